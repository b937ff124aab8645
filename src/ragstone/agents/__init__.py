"""Tools for agents, their budgets, and the loop in which a model calls them."""
