// What bridges share: the decoder's initial state, a copy of the summary or s_0 = tanh(W_0 h_T + b_0).
class StateProjection {
  constructor(weights, stateCount) {
    this.stateCount = stateCount;
    // only: start/linear
    this.project = new Linear(weights, "decoder.bridge.first.project");
    // end: start/linear
  }

  of(summary) {
    // only: start/linear
    return tanh(this.project.of(summary));
    // end: start/linear
    // only: start/copy
    return concat(Array(this.stateCount).fill(summary));
    // end: start/copy
  }
}
