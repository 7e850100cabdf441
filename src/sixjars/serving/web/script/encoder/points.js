// x_j = W_e p_j + b_e, h_j = RNN(h_{j-1}, x_j).
ENCODER.points = class {
  constructor(weights, settings) {
    this.embedding = new Linear(weights, "encoder.embedding");
    this.rnn = new DirectionalRNN(weights, "encoder.rnn", settings);
  }

  encode({ points }) {
    const { states, summary } = this.rnn.over(points.map((point) => this.embedding.of(point)));
    return { memory: states, summary, size: this.rnn.size };
  }
};
