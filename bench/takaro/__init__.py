"""Questions about a product's documentation, written by reading it, and what each way to search makes of them."""
