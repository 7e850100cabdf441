CELL.lstm = (given, recurrent, before) => {
  const size = before.hidden.length, hidden = new Float32Array(size), cell = new Float32Array(size);
  const gate = (number, at) => given[number * size + at] + recurrent[number * size + at];
  for (let at = 0; at < size; at++) {
    const kept = sigmoid(gate(1, at)) * before.cell[at];
    cell[at] = kept + sigmoid(gate(0, at)) * Math.tanh(gate(2, at));
    hidden[at] = sigmoid(gate(3, at)) * Math.tanh(cell[at]);
  }
  return { hidden, cell };
};
