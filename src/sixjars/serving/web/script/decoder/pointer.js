// Outputs positions of the source, each at most once: attention is the output. Token 4 + j points at position j.
DECODER.pointer = class {
  special = { banned: [PAD, GO, UNK], unknown: null };

  constructor(weights, settings, Bridge) {
    this.rnn = new Recurrent(weights, "decoder.rnn", settings);
    this.score = new Score(weights, "decoder");
    this.go = weights.vector("decoder.go");
    this.stop = settings.visits === "some" ? weights.vector("decoder.stop") : null;
    this.bridge = new Bridge(weights, this.rnn.stateCount * settings.layers);
  }

  start(encoded) {
    const positions = encoded.memory, pointerKeys = this.score.keys(positions);
    const prepared = { ...this.bridge.start(encoded), positions, pointerKeys };
    return { state: { rnn: this.rnn.first(prepared.firstState), chosen: [] }, prepared, longest: positions.length + 1 };
  }

  step(token, before, prepared) {
    const place = token - SPECIAL.length, chosen = place >= 0 ? [...before.chosen, place] : before.chosen;
    const input = token === GO ? this.go : prepared.positions[place] || new Float32Array(this.go.length);
    const context = this.bridge.step(before.rnn.at(-1).hidden, prepared, before.rnn.attended);
    const rnn = this.rnn.step(concat([input, context.vector]), before.rnn);
    // only: bridge/location
    rnn.attended = context.attended;
    // end: bridge/location
    const query = rnn.at(-1).hidden, taken = new Set(chosen), count = prepared.positions.length;
    const all = new Float32Array(SPECIAL.length + count).fill(-Infinity);
    if (taken.size === count || (this.stop && taken.size > 0)) {
      all[STOP] = this.stop ? this.score.of(query, [this.stop])[0] : 0;
    }
    this.score.of(query, prepared.pointerKeys).forEach((score, at) => {
      if (!taken.has(at)) all[SPECIAL.length + at] = score;
    });
    const scores = logSoftmax(all);
    return { scores, weights: scores.subarray(SPECIAL.length).map(Math.exp), state: { rnn, chosen } };
  }
};
