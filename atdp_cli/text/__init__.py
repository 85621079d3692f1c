"""Records, sensitive spans, and their redaction. Never imports torch."""
