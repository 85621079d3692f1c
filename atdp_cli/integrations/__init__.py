"""atdp inside the trainers of transformers and TRL. Nothing in the package imports this room."""
