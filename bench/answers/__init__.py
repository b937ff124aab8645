"""`python -m bench.answers`: answers and verdicts on a collection of questions, claims and altered statements."""
