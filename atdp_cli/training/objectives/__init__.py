"""The objectives of stages: one file each, with its loss and what it asks for. Private."""
