"""Measure any Retriever on labelled queries: dataset → runner → metrics → report."""
