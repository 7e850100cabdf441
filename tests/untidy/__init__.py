"""Files as people have them, through the command line."""
