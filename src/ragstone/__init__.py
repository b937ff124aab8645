"""Ragstone: a self-hosted knowledge engine with proof."""

__version__ = "0.1.0"
