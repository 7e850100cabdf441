// Byte pair encoding: of two neighbours, those that were merged first in training become one.
TOKENS.bpe = class extends Tokenizer {
  constructor(learned) {
    super(learned);
    this.ranks = new Map(learned.merges.map(([one, two], rank) => [`${one} ${two}`, rank]));
  }

  split(text) {
    return words(text).flatMap((word) => this.merged(Array.from(MARK + word)));
  }

  merged(parts) {
    for (;;) {
      let best = Infinity, place = -1;
      for (let at = 0; at + 1 < parts.length; at++) {
        const rank = this.ranks.get(`${parts[at]} ${parts[at + 1]}`);
        if (rank < best) [best, place] = [rank, at];
      }
      if (place < 0) return parts;
      parts.splice(place, 2, parts[place] + parts[place + 1]);
    }
  }
};
