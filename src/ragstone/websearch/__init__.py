"""Asking the web: search services behind one interface, with a cache."""
