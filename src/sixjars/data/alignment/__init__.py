"""Word alignment: which words of two texts that mean the same belong together, learned from the texts alone."""
