"""Conversations, votes, golden queries, the retrieval log and web results: repositories of a tenant's rows."""
