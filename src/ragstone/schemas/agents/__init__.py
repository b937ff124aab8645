"""Shapes of what agents make."""
