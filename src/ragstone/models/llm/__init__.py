"""Language models behind OpenAI-compatible addresses."""
