"""Jar 1: the systems. The only room that sees all the others."""
