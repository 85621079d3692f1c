"""What a model has memorised of a corpus in which nothing was planted."""
