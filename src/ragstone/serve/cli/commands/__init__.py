"""The commands, one module for each or for a few that belong together."""
