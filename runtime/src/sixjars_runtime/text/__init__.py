"""Texts: tokens and their vocabularies, segments and sentences, points written as text."""
