"""Tests of single modules and commands."""
