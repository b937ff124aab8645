"""Language of texts, for ingest, query and answer: terms, sentences, numbers, dates, grammar, and which language."""
