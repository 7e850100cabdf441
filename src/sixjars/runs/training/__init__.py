"""What a training is made of: the network, its memory, its end, its trend, and cross-validation."""
