// One network encodes both sentences; each word of the second is compared with the first.
ENCODER.pair = class {
  constructor(weights, settings) {
    this.sentence = new WordsEncoder(weights, settings.sentence, "encoder.sentence");
    this.size = 4 * this.sentence.size;
  }

  encode(sentence1, sentence2) {
    const first = this.sentence.encode(sentence1), second = this.sentence.encode(sentence2);
    const memory = second.memory.map((word) => {
      const weights = softmax(first.memory.map((other) => dot(word, other)));
      return this.compared(word, weighted(weights, first.memory, this.sentence.size));
    });
    return { memory, summary: this.compared(first.summary, second.summary), size: this.size };
  }

  // Both, their distance and their product, side by side.
  compared(one, other) {
    const distance = one.map((value, at) => Math.abs(value - other[at]));
    return concat([one, other, distance, one.map((value, at) => value * other[at])]);
  }
};
