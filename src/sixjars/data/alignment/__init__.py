"""Word alignment: which words of two texts of the same meaning correspond, learned from texts."""
