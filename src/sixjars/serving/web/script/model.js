// A whole model from one file, whose header holds the recipe's model section, the search and the vocabularies.
class Model {
  constructor(weights, fingerprint) {
    const { page: own, ...plan } = weights.header, { encoder, bridge, decoder } = plan.model;
    if (own !== fingerprint) throw new Error("This file is the model of another page; open the model.bin that was exported with this one.");
    this.search = plan.search;
    this.inputs = plan.inputs.map((field) => new FIELD[known(FIELD, field.settings.kind)](field));
    this.output = new FIELD[known(FIELD, plan.output.settings.kind)](plan.output);
    this.positionsOf = plan.positions_of;
    this.encoder = new ENCODER[known(ENCODER, encoder.kind)](weights, encoder);
    this.decoder = new DECODER[known(DECODER, decoder.kind)](weights, decoder, BRIDGE[known(BRIDGE, bridge.kind)]);
    this.asked = plan.inputs.length ? plan.inputs : [{ ...plan.output, begins: true }]; // or how the output begins
    this.example = plan.example;
    this.searches = "step" in this.decoder;
    this.copies = Boolean(decoder.copying);
  }

  // The best outputs for one input, a text or a file for each field; null where `stopped` said that nobody waits any more.
  async predict(given, search = this.search, stopped = () => false) {
    const read = await Promise.all(this.inputs.map((field, at) => field.encode(given[at])));
    const encoded = await this.encoder.encode(...read);
    const copied = this.copies ? this.inputs[0].encode(given[0], this.output.tokenizer) : null;
    let found;
    if (this.searches) {
      const prefix = this.inputs.length ? [] : this.prefix(given[0], search);
      const begin = this.decoder.start(encoded, copied && this.output.copyable(copied));
      found = await SEARCH[search.kind](new Problem(this.decoder, search, begin, prefix, stopped));
    } else found = this.decoder.choose(encoded, search.nbest, this.output.multiLabel);
    const place = this.inputs.findIndex(({ name }) => name === this.positionsOf), source = read[place];
    return found && found.map((one) => ({ ...this.prediction(one, source, read, copied, search), ...drawable(source, encoded) }));
  }

  // The ids that an output must begin with.
  prefix(text, search) {
    const ids = this.output.tokenizer.read(text).map(({ id }) => id);
    if (ids.length < search.max_length) return ids;
    throw new Error(`has ${ids.length} tokens, but an output has at most ${search.max_length} (max_length).`);
  }

  prediction(found, source, read, copied, search) {
    let { tokens: ids } = found, sourceWords = copied ? copied.words : [];
    const { weights } = found, size = this.output.tokenizer ? this.output.tokenizer.size : Infinity;
    if (search.unknown === "replace" && weights.length && read[0].words) {
      sourceWords = read[0].words.map((word) => this.output.adopted(word, this.inputs[0].tokenizer));
      ids = ids.map((id, at) => (id === UNK ? size + weights[at].indexOf(highest(weights[at])) : id));
    }
    const stop = found.finished && this.searches ? [STOP] : [];
    return {
      text: this.output.decode(ids, sourceWords),
      score: found.score,
      logProbability: found.logProbability,
      finished: found.finished,
      tokens: this.output.tokens([...ids, ...stop], sourceWords),
      weights: weights.map((row) => Array.from(row)),
      copied: [...ids, ...stop].map((id) => (id >= size ? id - size : null)),
      source: copied ? copied.words.map((word) => this.output.tokenizer.plain(word)) : source ? source.shown : [],
      segments: source && source.inSegments ? source.segments.flatMap((own, at) => own.map(() => at)) : [],
      truncated: read.some(({ truncated }) => truncated),
      tokensRead: read.reduce((sum, { ids: own = [] }) => sum + own.length, 0),
      unknownTokens: read.reduce((sum, { unknown = 0 }) => sum + unknown, 0),
    };
  }
}

// What an output is drawn on: points, an image and its cells, or frames.
function drawable({ points, picture, strip } = {}, { grid }) {
  return { points: points ? points.map((point) => Array.from(point)) : null, picture, strip, grid };
}

function known(table, kind) {
  if (Object.hasOwn(table, kind)) return kind;
  throw new Error(`This page has no component of kind ${kind}; use the page that the model was exported with.`);
}
