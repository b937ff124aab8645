"""Results as people read them: tables, lines, progress bars."""
