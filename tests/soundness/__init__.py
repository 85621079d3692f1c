"""Statistical harnesses: lower bounds on ε from what the mechanism and the whole loop give away."""
