// The summary is a weighted sum of all positions (or of all segments, where there are some), with a learned query.
BRIDGE.pooling = class {
  constructor(weights, stateCount) {
    this.first = new StateProjection(weights, stateCount);
    this.key = new Linear(weights, "decoder.bridge.key");
    this.query = new Linear(weights, "decoder.bridge.query");
    this.scale = weights.has("decoder.bridge.scale") ? weights.vector("decoder.bridge.scale")[0] : 1;
  }

  start({ memory, size, level, summary }) {
    const vectors = level ? level.memory : memory;
    const scores = vectors.map((vector, at) =>
      (level && level.isEmpty[at] ? -Infinity : this.query.of(tanh(this.key.of(vector)))[0]));
    const shares = softmax(scores);
    let pooled = weighted(shares.map((share) => this.scale * share), vectors, level ? vectors[0].length : size);
    // only: join_summary
    pooled = concat([pooled, summary]);
    // end: join_summary
    const weights = level ? level.within.map((share, at) => share * shares[level.segmentOf[at]]) : shares;
    return { firstState: this.first.of(pooled), weights };
  }

  step(query, { weights }) {
    return { vector: new Float32Array(0), weights };
  }
};
