// A share of attention for each segment, times that of each word in it.
BRIDGE.two_level = class {
  constructor(weights, stateCount) {
    this.first = new StateProjection(weights, stateCount);
    this.segments = new Score(weights, "decoder.bridge.segments");
    this.words = new Score(weights, "decoder.bridge.words");
  }

  start({ summary, memory, size, level }) {
    const keys = this.words.keys(memory), segmentKeys = this.segments.keys(level.memory);
    return { firstState: this.first.of(summary), memory, size, level, keys, segmentKeys };
  }

  step(query, { memory, size, level, keys, segmentKeys }) {
    const segmentScores = this.segments.of(query, segmentKeys);
    const shares = softmax(segmentScores.map((score, at) => (level.isEmpty[at] ? -Infinity : score)));
    const scores = this.words.of(query, keys), weights = new Float32Array(scores.length);
    for (let begin = 0, end; begin < scores.length; begin = end) {
      const segment = level.segmentOf[begin];
      for (end = begin; level.segmentOf[end] === segment;) end++;
      weights.set(softmax(scores.slice(begin, end)).map((weight) => weight * shares[segment]), begin);
    }
    return { vector: weighted(weights, memory, size), weights };
  }
};
