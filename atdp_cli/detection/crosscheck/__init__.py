"""The cross-check: a language model is asked what the detector may have missed. Private."""
