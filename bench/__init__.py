"""Measurements. `python -m bench` runs them all; each part runs in a process of its own, so that memory is its own."""
