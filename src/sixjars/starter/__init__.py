"""A starter recipe for a table of data: its columns, a recipe that fits, candidates that race."""
