"""Hits become an answer: pack → prompt → compose → check support, or quote the sentences; then cite and write."""
