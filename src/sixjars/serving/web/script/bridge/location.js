// e_jt = V_attᵀ tanh(U_att s_{t-1} + W_att h_j + F_att z_jt), where z_jt has the last weights and the coverage around j.
BRIDGE.location = class {
  constructor(weights, stateCount) {
    this.first = new StateProjection(weights, stateCount);
    this.score = new Score(weights, "decoder.bridge.score");
    this.location = new Linear(weights, "decoder.bridge.location");
    this.radius = (this.location.matrix.columns / 2 - 1) / 2;
  }

  start({ summary, memory, size }) {
    return { firstState: this.first.of(summary), memory, size, keys: this.score.keys(memory) };
  }

  step(query, { memory, size, keys }, attended) {
    const before = attended || [new Float32Array(keys.length), new Float32Array(keys.length)];
    const located = keys.map((key, at) => {
      const added = this.location.of(concat(before.map((row) => this.around(row, at))));
      return key.map((value, feature) => value + added[feature]);
    });
    const weights = softmax(this.score.of(query, located));
    return { vector: weighted(weights, memory, size), weights, attended: [weights, weights.map((one, at) => one + before[1][at])] };
  }

  around(row, at) {
    return Float32Array.from({ length: 2 * this.radius + 1 }, (_, by) => row[at - this.radius + by] || 0);
  }
};
