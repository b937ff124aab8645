"""Git repositories, read without running git hooks or filters."""
