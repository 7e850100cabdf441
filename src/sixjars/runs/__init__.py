"""Work with one recipe or run: read, train, predict, evaluate, explain, prepare, share."""
