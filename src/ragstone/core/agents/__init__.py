"""Results of agents."""
