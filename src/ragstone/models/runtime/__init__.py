"""Local inference: runtimes, batching, tokenizing."""
