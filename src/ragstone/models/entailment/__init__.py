"""Entailment: a local model, or an LLM as judge."""
