// A whole model from one file, whose header holds the recipe's model section, the search and the vocabularies.
class Model {
  constructor(weights, fingerprint) {
    const { page: own, ...plan } = weights.header, { encoder, bridge, decoder } = plan.model;
    if (own !== fingerprint) throw new Error("This file is the model of another page; open the model.bin that was exported with this one.");
    this.search = plan.search;
    this.order = plan.order;
    this.inputs = plan.inputs.map((field) => new FIELD[known(FIELD, field.settings.kind)](field));
    this.output = new FIELD[known(FIELD, plan.output.settings.kind)](plan.output);
    this.positionsOf = plan.positions_of;
    this.encoder = new ENCODER[known(ENCODER, encoder.kind)](weights, encoder);
    this.decoder = new DECODER[known(DECODER, decoder.kind)](weights, decoder, BRIDGE[known(BRIDGE, bridge.kind)]);
    this.asked = plan.inputs.length ? plan.inputs : [{ ...plan.output, begins: true }]; // or how the output begins
    this.example = plan.example;
  }

  // The best outputs for one input, a text or a file for each field; null where `stopped` said that nobody waits any more.
  async predict(given, search = this.search, stopped = () => false) {
    const read = await Promise.all(this.inputs.map((field, at) => field.encode(given[at])));
    const encoded = await this.encoder.encode(...read);
    const source = read[this.inputs.findIndex(({ name }) => name === this.positionsOf)];
    let copied = null;
    // only: copying
    copied = this.inputs[0].encode(given[0], this.output.tokenizer);
    // end: copying
    const found = await this.best(encoded, given, copied, search, stopped);
    return found && found.map((one) => ({
      ...this.prediction(one, source, read, copied, search),
      // only: input/points, input/image, input/video
      ...drawable(source, encoded),
      // end: input/points, input/image, input/video
    }));
  }

  best(encoded, given, copied, search, stopped) {
    // only: decoder/label
    return this.decoder.choose(encoded, search.nbest, this.output.multiLabel);
    // end: decoder/label
    // only: searches
    const begin = this.decoder.start(encoded);
    // only: copying
    begin.prepared.copyIds = this.output.copyable(copied); // what copying each position of the source would output
    // end: copying
    // only: encoder/none
    begin.prefix = this.prefix(given[0], search);
    // end: encoder/none
    return SEARCH[search.kind](new Problem(this.decoder, search, begin, stopped));
    // end: searches
  }
  // only: encoder/none

  // The ids that an output must begin with.
  prefix(text, search) {
    const ids = this.output.tokenizer.read(text).map(({ id }) => id);
    if (ids.length < search.max_length) return ids;
    throw new Error(`has ${ids.length} tokens, but an output has at most ${search.max_length} (max_length).`);
  }
  // end: encoder/none

  prediction({ tokens, weights, ...found }, source, read, copied, search) {
    let ids = tokens, sourceWords = [];
    // only: borrows
    const { size } = this.output.tokenizer;
    if (copied) sourceWords = copied.words;
    if (search.unknown === "replace" && weights.length && read[0].words) {
      sourceWords = read[0].words.map((word) => this.output.adopted(word, this.inputs[0].tokenizer));
      ids = ids.map((id, at) => (id === UNK ? size + weights[at].indexOf(highest(weights[at])) : id));
    }
    // end: borrows
    const text = this.output.decode(ids, sourceWords);
    // only: searches
    if (found.finished) ids = [...ids, STOP];
    // end: searches
    let places = ids.map(() => null), shown = source ? source.shown : [], segments = [];
    // only: borrows
    places = ids.map((id) => (id >= size ? id - size : null));
    if (copied) shown = copied.words.map((word) => this.output.tokenizer.plain(word));
    // end: borrows
    // only: segments/lines, segments/sentences, segments/turns
    if (source && source.inSegments) segments = source.segments.flatMap((own, at) => own.map(() => at));
    // end: segments/lines, segments/sentences, segments/turns
    return {
      ...found, text, copied: places, source: shown, segments,
      tokens: this.output.tokens(ids, sourceWords),
      weights: weights.map((row) => Array.from(row)),
      truncated: read.some(({ truncated }) => truncated),
      tokensRead: read.reduce((sum, { ids: own = [] }) => sum + own.length, 0),
      unknownTokens: copied ? 0 : read.reduce((sum, { unknown = 0 }) => sum + unknown, 0),
    };
  }
}
// only: input/points, input/image, input/video

// What an output is drawn on: points, an image and its cells, or frames.
function drawable({ points, picture, strip } = {}, { grid }) {
  return { points: points ? points.map((point) => Array.from(point)) : null, picture, strip, grid };
}
// end: input/points, input/image, input/video

function known(table, kind) {
  if (Object.hasOwn(table, kind)) return kind;
  throw new Error(`This page has no component of kind ${kind}; use the page that the model was exported with.`);
}
