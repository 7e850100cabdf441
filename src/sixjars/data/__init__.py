"""Jar 2: files and made-up corpora in, batches of token ids out."""
