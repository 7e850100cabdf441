"""Tests of the toolkit."""
