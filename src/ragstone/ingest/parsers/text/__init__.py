"""Text files: plain text, Markdown, CSV, JSON, and decoding bytes."""
