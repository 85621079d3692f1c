"""Training one stage of a recipe: sample, clip, add noise, step. Private."""
