"""One model trained by several processes."""
