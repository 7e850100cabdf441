// The summary makes the initial state, and no more.
BRIDGE.initial = class {
  constructor(weights, stateCount) {
    this.first = new StateProjection(weights, stateCount);
  }

  start({ summary }) {
    return { firstState: this.first.of(summary) };
  }

  step() {
    return { vector: new Float32Array(0), weights: null };
  }
};
