"""A report of a run: all that is known of it, as one HTML file."""
