"""What is sensitive in a text: identifiers, named entities, and lists of terms."""
