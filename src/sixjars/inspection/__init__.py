"""Looking at a model: its equations, its weights, and what it attends to."""
