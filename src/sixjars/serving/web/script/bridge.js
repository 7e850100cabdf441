// What bridges share: the decoder's initial state, s_0 = tanh(W_0 h_T + b_0) or a copy of the summary.
class StateProjection {
  constructor(weights, stateCount) {
    this.project = weights.has("decoder.bridge.first.project.weight")
      ? new Linear(weights, "decoder.bridge.first.project")
      : null;
    this.stateCount = stateCount;
  }

  of(summary) {
    return this.project ? tanh(this.project.of(summary)) : concat(Array(this.stateCount).fill(summary));
  }
}
