"""What people review: a sample of sentences, their decisions, and the lists that come of them."""
