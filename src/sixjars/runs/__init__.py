"""What a person does with a recipe or a run: read, train, predict, evaluate, compare, explain, prepare, start anew."""
