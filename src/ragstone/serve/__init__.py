"""Adapters to the outside: what people and programs talk to. No logic of its own."""
