// Words: h_nk = RNN(h_{n,k-1}, E_enc[x_nk]). Segments, such as sentences or turns: g_n = RNN(g_{n-1}, z_n).
ENCODER.hierarchy = class {
  constructor(weights, settings) {
    this.words = new WordsEncoder(weights, settings.words, "encoder.words");
    this.rnn = new DirectionalRNN(weights, "encoder.rnn", settings);
    this.pool = settings.pool === "attention"
      ? { key: new Linear(weights, "encoder.pool.key"), query: new Linear(weights, "encoder.pool.query") }
      : null;
  }

  encode({ segments }) {
    const read = segments.map((ids) => this.words.encode({ ids }));
    const shares = this.pool && read.map(({ memory }) =>
      softmax(memory.map((state) => this.pool.query.of(tanh(this.pool.key.of(state)))[0])));
    const vectors = read.map(({ memory, summary }, at) =>
      (shares ? weighted(shares[at], memory, this.words.size) : summary));
    const { states, summary } = this.rnn.over(vectors);
    const level = {
      memory: states,
      segmentOf: segments.flatMap((ids, at) => ids.map(() => at)),
      within: shares ? concat(shares) : Float32Array.from(segments.flatMap((ids) => ids.map(() => 1 / ids.length))),
      isEmpty: segments.map((ids) => ids.length === 0),
    };
    return { memory: read.flatMap(({ memory }) => memory), summary, size: this.words.size, level };
  }
};
