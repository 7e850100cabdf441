// Vectors of words to attend to, and the evidence of words and pairs of words as the summary.
ENCODER.bag = class {
  constructor(weights, settings) {
    this.embedding = new WordEmbedding(weights, "encoder.embedding");
    this.ngrams = new NgramVectors(weights, settings.ngrams, "encoder.ngrams");
    this.size = settings.embedding.size;
  }

  encode({ ids }) {
    return { memory: ids.map((id) => this.embedding.of(id)), summary: this.ngrams.of(ids), size: this.size };
  }
};
