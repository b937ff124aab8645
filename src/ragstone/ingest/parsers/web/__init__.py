"""HTML pages and feeds."""
