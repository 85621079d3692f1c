"""A language model is asked about what the detector left unflagged."""
