"""The customer-service agent: it answers from a shop's documents, its data and, where allowed, the web."""
