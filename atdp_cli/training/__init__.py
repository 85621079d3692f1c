"""One stage of a recipe: sample, clip, add noise, step."""
