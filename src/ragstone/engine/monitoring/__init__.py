"""Metrics, health, alerts and analytics of an engine."""
