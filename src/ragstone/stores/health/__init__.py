"""Checks of what is stored."""
