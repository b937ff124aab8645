"""Scientific papers."""
