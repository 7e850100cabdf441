"""Copies of modules of sixjars, written by runtime/generate.py: change the originals."""
