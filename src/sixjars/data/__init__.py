"""Jar 2: files and synthetic corpora in, batches of token ids out."""
