"""The Model Context Protocol: tools, resources and prompts for agents."""
