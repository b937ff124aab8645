"""Export to and import from archives."""
