"""What the stages of training descend on: objectives by kind, and the losses of unlearning."""
