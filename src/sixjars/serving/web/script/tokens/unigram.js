// A unigram language model: the tokens whose log probabilities sum to the most.
TOKENS.unigram = class extends Tokenizer {
  constructor(learned) {
    super(learned);
    this.scores = new Map(learned.tokens.map((token, at) => [token, learned.scores[at]]));
    this.unknown = learned.scores.reduce((least, score) => Math.min(least, score), 0) - 10;
    this.longest = learned.tokens.reduce((most, token) => Math.max(most, Array.from(token).length), 1);
  }

  split(text) {
    return words(text).flatMap((word) => this.best(Array.from(MARK + word)));
  }

  // Viterbi; letters that are unknown, and stand side by side, are one token.
  best(letters) {
    const paths = [{ score: 0 }];
    letters.forEach((letter, from) => {
      const offer = (to, score, known) => {
        const whole = paths[from].score + score;
        if (!paths[to] || whole > paths[to].score) paths[to] = { score: whole, from, known };
      };
      for (let to = from + 1; to <= Math.min(letters.length, from + this.longest); to++) {
        const score = this.scores.get(letters.slice(from, to).join(""));
        if (score !== undefined) offer(to, score, true);
      }
      if (!this.scores.has(letter)) offer(from + 1, this.unknown, false);
    });
    const found = [];
    for (let at = letters.length, later = true; at > 0; at = paths[at].from) {
      const { from, known } = paths[at], token = letters.slice(from, at).join("");
      if (!known && !later) found[0] = token + found[0]; else found.unshift(token);
      later = known;
    }
    return found;
  }
};
