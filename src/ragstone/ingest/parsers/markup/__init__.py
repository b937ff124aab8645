"""Markup of manuals: reStructuredText, AsciiDoc, man pages and Org, told apart by their shape where no name says it."""
