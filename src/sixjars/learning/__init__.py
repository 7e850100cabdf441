"""Jar 5: how the weights move, and how nothing is lost."""
