// Chooses one label of a closed list, or all that apply.
DECODER.label = class {
  constructor(weights, settings, Bridge) {
    this.bridge = new Bridge(weights, 1);
    // only: bridge/attention, bridge/two_level, bridge/every_step
    this.mix = new Linear(weights, "decoder.mix");
    // end: bridge/attention, bridge/two_level, bridge/every_step
    this.output = new Linear(weights, "decoder.output");
  }

  // The most probable labels, `nbest` of them; with `multiLabel` one set of all that apply.
  choose(encoded, nbest, multiLabel) {
    const prepared = this.bridge.start(encoded), context = this.bridge.step(prepared.firstState, prepared);
    let state = prepared.firstState;
    // only: bridge/attention, bridge/two_level, bridge/every_step
    state = tanh(this.mix.of(concat([state, context.vector])));
    // end: bridge/attention, bridge/two_level, bridge/every_step
    const logits = this.output.of(state), weights = context.weights ? [context.weights] : [];
    const found = (tokens, score) => ({ tokens, score, logProbability: score, weights, finished: true });
    // only: multi_label
    if (multiLabel) return [found(...applying(logits))];
    // end: multi_label
    const scores = logSoftmax(logits);
    return bestFirst(scores).slice(0, nbest).map((label) => found([label], scores[label]));
  }
};

const bestFirst = (scores) => [...scores.keys()].sort((one, two) => scores[two] - scores[one]);
// only: multi_label

// All labels that apply, or at least the most probable one; and log P of these and no others.
function applying(logits) {
  const scores = logits.map((logit) => Math.min(logit, 0) - Math.log1p(Math.exp(-Math.abs(logit))));
  const order = bestFirst(scores), count = Math.max(1, order.filter((label) => scores[label] >= Math.log(0.5)).length);
  const whole = order.reduce((sum, label, rank) =>
    sum + (rank < count ? scores[label] : Math.log1p(-Math.exp(scores[label]))), 0);
  return [order.slice(0, count), whole];
}
// end: multi_label
