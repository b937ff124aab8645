"""The one typed tree of settings, a module for each section."""
