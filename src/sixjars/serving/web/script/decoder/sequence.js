// Generates a sequence, one token after the other: P(y_t | y_1..y_{t-1}, x) = softmax(V_out s_t + b_out).
DECODER.sequence = class {
  special = { banned: [PAD, GO], unknown: UNK };

  constructor(weights, settings, Bridge) {
    this.embedding = new WordEmbedding(weights, "decoder.embedding");
    const matrix = settings.tied ? this.embedding.table : weights.tensor("decoder.output.weight");
    this.output = { matrix, bias: weights.vector("decoder.output.bias") };
    // only: conditional
    this.middle = new Recurrent(weights, "decoder.rnn.middle", { cell: settings.cell });
    // end: conditional
    this.rnn = new Recurrent(weights, settings.conditional ? "decoder.rnn.last" : "decoder.rnn", settings);
    // only: copying
    this.gate = new Linear(weights, "decoder.copy_gate.gate");
    // end: copying
    this.bridge = new Bridge(weights, this.rnn.stateCount * settings.layers);
  }

  start(encoded) {
    const prepared = this.bridge.start(encoded);
    return { state: this.rnn.first(prepared.firstState), prepared };
  }

  step(token, before, prepared) {
    const size = this.output.matrix.rows, embedded = this.embedding.of(token < size ? token : UNK);
    const { state, context } = this.recurrence(embedded, before, prepared), top = state.at(-1).hidden;
    // only: bridge/location
    state.attended = context.attended;
    // end: bridge/location
    let logits = product(this.output.matrix, top, this.output.bias);
    // only: copying
    logits = this.mixed(logits, concat([top, context.vector, embedded]), context, prepared);
    // end: copying
    return { scores: logSoftmax(logits), weights: context.weights, state };
  }

  recurrence(embedded, before, prepared) {
    // only: conditional
    if (this.middle) { // attention receives a state that has read the previous token
      const [middle] = this.middle.step(embedded, before.slice(0, 1));
      const context = this.bridge.step(middle.hidden, prepared, before.attended);
      return { context, state: this.rnn.step(context.vector, [middle, ...before.slice(1)]) };
    }
    // end: conditional
    const context = this.bridge.step(before.at(-1).hidden, prepared, before.attended);
    return { context, state: this.rnn.step(concat([embedded, context.vector]), before) };
  }
  // only: copying

  // log of p_gen P_V(y) + (1 - p_gen) Σ α_j over the positions j where y stands.
  mixed(logits, inputs, { weights }, { copyIds }) {
    const gate = this.gate.of(inputs)[0], generated = sigmoid(gate), copied = sigmoid(-gate);
    const all = new Float32Array(logits.length + copyIds.length);
    softmax(logits).forEach((share, at) => { all[at] = generated * share; });
    copyIds.forEach((id, at) => { all[id] += copied * weights[at]; });
    return all.map((share) => Math.log(Math.max(share, 2 ** -126)));
  }
  // end: copying
};
