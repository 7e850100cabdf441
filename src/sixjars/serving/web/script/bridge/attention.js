// e_jt = score(s_{t-1}, h_j), α_jt = softmax_j(e_jt), c_t = Σ_j α_jt h_j.
BRIDGE.attention = class {
  constructor(weights, stateCount) {
    this.first = new StateProjection(weights, stateCount);
    this.score = new Score(weights, "decoder.bridge.score");
  }

  start({ summary, memory, size }) {
    return { firstState: this.first.of(summary), memory, size, keys: this.score.keys(memory) };
  }

  step(query, { memory, size, keys }) {
    const weights = softmax(this.score.of(query, keys));
    return { vector: weighted(weights, memory, size), weights };
  }
};
