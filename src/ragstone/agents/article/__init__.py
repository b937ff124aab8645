"""Agents that research, write, edit and check an article on a topic of the knowledge base.

`write_article` in `ragstone.agents.article.run` does it; LangGraph, of the `agents` extra, runs the nodes.
"""
