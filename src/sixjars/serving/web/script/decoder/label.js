// Chooses one label of a closed list, or all that apply.
const LIKELY = Math.log(0.5);

DECODER.label = class {
  constructor(weights, settings, Bridge) {
    this.bridge = new Bridge(weights, 1);
    this.mix = weights.has("decoder.mix.weight") ? new Linear(weights, "decoder.mix") : null;
    this.output = new Linear(weights, "decoder.output");
  }

  // The most probable labels, `nbest` of them; with `multiLabel` one set of all that apply.
  choose(encoded, nbest, multiLabel) {
    const prepared = this.bridge.start(encoded), context = this.bridge.step(prepared.firstState, prepared);
    const both = concat([prepared.firstState, context.vector]);
    const logits = this.output.of(this.mix ? tanh(this.mix.of(both)) : prepared.firstState);
    const logSigmoid = (logit) => Math.min(logit, 0) - Math.log1p(Math.exp(-Math.abs(logit)));
    const scores = multiLabel ? logits.map(logSigmoid) : logSoftmax(logits);
    const order = [...scores.keys()].sort((one, two) => scores[two] - scores[one]);
    const weights = context.weights ? [context.weights] : [];
    const found = (tokens, score) => ({ tokens, score, logProbability: score, weights, finished: true });
    if (!multiLabel) return order.slice(0, nbest).map((label) => found([label], scores[label]));
    const count = Math.max(1, order.filter((label) => scores[label] >= LIKELY).length);
    const whole = order.reduce((sum, label, rank) =>
      sum + (rank < count ? scores[label] : Math.log1p(-Math.exp(scores[label]))), 0);
    return [found(order.slice(0, count), whole)];
  }
};
