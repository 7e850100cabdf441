"""Several recipes or runs side by side: scores, significance, cost, examples."""
