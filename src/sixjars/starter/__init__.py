"""A starter recipe for a table of data: what is in its columns, and a recipe that fits; candidates that race."""
