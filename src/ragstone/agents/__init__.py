"""What agents work with: tools that are defined once, budgets for them, and the loop that lets a model call them."""
