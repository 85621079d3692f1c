"""The privacy report: one document, rendered. Never imports torch."""
