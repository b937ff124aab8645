"""The agents with a real language model: SmolLM2's weights, computed with numpy and served on loopback."""
