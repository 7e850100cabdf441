// One network encodes both sentences; words of the second are compared with the first, or words of both with the other.
ENCODER.pair = class {
  constructor(weights, settings) {
    this.sentence = new WordsEncoder(weights, settings.sentence, "encoder.sentence");
    this.size = 4 * this.sentence.size;
    // only: compare/words
    this.sharedWord = weights.vector("encoder.shared_word");
    this.comparison = new Linear(weights, "encoder.comparison");
    // end: compare/words
  }

  encode(sentence1, sentence2) {
    // only: compare/summaries
    const first = this.sentence.encode(sentence1), second = this.sentence.encode(sentence2);
    const memory = this.aligned(second, first);
    return { memory, summary: this.compared(first.summary, second.summary), size: this.size };
    // end: compare/summaries
    // only: compare/words
    const first = this.marked(sentence1, sentence2), second = this.marked(sentence2, sentence1);
    const memory = this.aligned(second, first);
    return { memory, summary: concat([...this.pooled(this.aligned(first, second)), ...this.pooled(memory)]), size: this.size };
    // end: compare/words
  }

  // Each word of a sentence beside the words of the other that it attends to.
  aligned(sentence, other) {
    return sentence.memory.map((word) => {
      const weights = softmax(other.memory.map((its) => dot(word, its)));
      return this.compared(word, weighted(weights, other.memory, this.sentence.size));
    });
  }

  // Both, their distance and their product, side by side.
  compared(one, other) {
    const distance = one.map((value, at) => Math.abs(value - other[at]));
    return concat([one, other, distance, one.map((value, at) => value * other[at])]);
  }
  // only: compare/words

  // The states of one sentence, whose words know whether the other sentence has them.
  marked({ ids }, other) {
    const { states, summary } = this.sentence.rnn.over(ids.map((id) => {
      const vector = this.sentence.embedding.of(id), isShared = id > UNK && other.ids.includes(id);
      return isShared ? vector.map((value, at) => value + this.sharedWord[at]) : vector;
    }));
    return { memory: states, summary };
  }

  // The mean and the maximum over the words of relu(W_cmp h + b_cmp).
  pooled(comparisons) {
    const { rows } = this.comparison.matrix, mean = new Float64Array(rows), most = new Float32Array(rows);
    for (const comparison of comparisons) {
      this.comparison.of(comparison).forEach((value, at) => {
        mean[at] += Math.max(value, 0) / comparisons.length;
        most[at] = Math.max(value, most[at]);
      });
    }
    return [mean, most];
  }
  // end: compare/words
};
