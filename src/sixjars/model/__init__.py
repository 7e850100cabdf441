"""Jar 3: encoder, bridge, decoder, and the network they make."""
