"""Views of attention as HTML that answers when it is pointed at."""
