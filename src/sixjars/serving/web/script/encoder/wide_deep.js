// A recurrent encoder, with the evidence of words and pairs of words beside its summary.
ENCODER.wide_deep = class {
  constructor(weights, settings) {
    this.deep = new WordsEncoder(weights, settings.deep, "encoder.deep");
    this.ngrams = new NgramVectors(weights, settings.ngrams, "encoder.ngrams");
  }

  encode({ ids }) {
    const { memory, summary, size } = this.deep.encode({ ids });
    return { memory, summary: concat([summary, this.ngrams.of(ids)]), size };
  }
};
