CELL.gru = (given, recurrent, before) => {
  const size = before.hidden.length, hidden = new Float32Array(size);
  for (let at = 0; at < size; at++) {
    const reset = sigmoid(given[at] + recurrent[at]), update = sigmoid(given[size + at] + recurrent[size + at]);
    const fresh = Math.tanh(given[2 * size + at] + reset * recurrent[2 * size + at]);
    hidden[at] = fresh + update * (before.hidden[at] - fresh);
  }
  return { hidden };
};
