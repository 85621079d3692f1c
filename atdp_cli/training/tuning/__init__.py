"""The search for the learning rate of a stage: its plan, its trials, and what they are judged by."""
