"""`atdp review`: people look at sampled sentences and correct the detector. Private."""
