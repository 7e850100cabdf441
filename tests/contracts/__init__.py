"""The promises that every part keeps: each written once, each run over every case of a table."""
