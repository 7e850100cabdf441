"""Parameter search: a recipe and a space of values in, the recipe with the best values out."""
