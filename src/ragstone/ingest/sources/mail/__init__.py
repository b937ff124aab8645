"""Mailboxes: Gmail, IMAP and mbox files."""
