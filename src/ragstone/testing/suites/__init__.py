"""Conformance suites that every adapter must pass."""
