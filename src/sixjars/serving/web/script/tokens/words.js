// Words, that end at punctuation too, or at spaces alone.
// only: split/punctuation
// One mark or symbol, or what says that the sign before it is an emoji.
const PUNCTUATION = /([\p{P}\p{S}\ufe0e\ufe0f\u20e3])/u;
// end: split/punctuation

TOKENS.words = class extends Tokenizer {
  constructor(learned) {
    super(learned);
    this.isWhole = true;
    // only: tokens/bpe, tokens/unigram, words/marks
    this.marked = false;
    // end: tokens/bpe, tokens/unigram, words/marks
    // only: words/marks
    this.marked = learned.split === "punctuation" && learned.format === 2; // a run of an older version
    // end: words/marks
    // only: split/punctuation
    this.joins = learned.split === "punctuation" && !this.marked;
    if (this.joins) addStandIns(this.numbers);
    // end: split/punctuation
  }

  split(text) {
    const found = words(text);
    // only: words/marks
    // One mark or symbol, and the mark of a space before it, is a token.
    const parts = (word) => (MARK + word).split(/(▁?(?!▁)[\p{P}\p{S}])/u).filter((part) => part);
    if (this.marked) return found.flatMap(parts);
    // end: words/marks
    // only: split/punctuation
    if (this.joins) return found.flatMap((word) => withJoiners(word.split(PUNCTUATION).filter((part) => part)));
    // end: split/punctuation
    return found;
  }

  tokens(ids, sourceWords) {
    return super.tokens(ids, sourceWords).map((token) => this.plain(token));
  }
  // only: output/text

  joined(ids, sourceWords) {
    const tokens = ids.map((id) => this.name(id, sourceWords));
    // only: words/marks
    if (this.marked) return ids.map((id, at) => this.spaced(id, tokens[at], tokens[at - 1] || "", sourceWords)).join("");
    // end: words/marks
    // only: split/punctuation
    // only: borrows
    if (this.joins) this.spellAsInSource(ids, tokens, sourceWords);
    // end: borrows
    if (this.joins) return tokens.join(" ").replace(/￭? ￭|￭ /g, "").replace(/^￭+|￭+$/g, "");
    // end: split/punctuation
    return tokens.join(" ");
  }
  // only: borrows
  // only: split/punctuation

  // Spells tokens beside a copied word as beside it in the source, where they stand in for that.
  spellAsInSource(ids, tokens, sourceWords) {
    const given = [...tokens];
    ids.forEach((id, at) => {
      const place = id - this.size;
      if (place < 0) return;
      const goesOn = at > 0 && place > 0 && given[at - 1] === sourceWords[place - 1];
      if (/[\p{L}\p{N}]/u.test(given[at]) && !goesOn) tokens[at] = this.plain(given[at]);
      for (const step of [-1, 1]) {
        const form = sourceWords[place + step], standsIn = this.numbers.get(form);
        if (standsIn !== undefined && standsIn === ids[at + step]) tokens[at + step] = form;
      }
    });
  }
  // end: split/punctuation
  // end: borrows
  // only: words/marks

  // A marked token as it is joined to the one before it.
  spaced(id, token, before, sourceWords) {
    if (id === UNK) return ` ${token}`;
    // only: borrows
    // A copied word goes by what it now follows.
    const word = this.plain(token), place = id - this.size;
    if (place >= 0 && /[\p{L}\p{N}]/u.test(word)) {
      const asRead = token === word && place > 0 && before === sourceWords[place - 1];
      return asRead || leads(before) ? word : ` ${word}`;
    }
    // end: borrows
    return token;
  }
  // end: words/marks
  // end: output/text
};
// only: split/punctuation

// The parts of a word; a mark has a joiner before it, and after it where letters follow.
function withJoiners(parts) {
  const isWord = (part) => part && !PUNCTUATION.test(part);
  return parts.map((part, at) => {
    return isWord(part) ? part : (at ? JOINER : "") + part + (isWord(parts[at + 1]) ? JOINER : "");
  });
}

// An unknown form of a mark has the number of the nearest known one, of several the first.
function addStandIns(numbers) {
  for (const mark of new Set(Array.from(numbers.keys(), withoutJoiners))) {
    if (Array.from(mark).length !== 1 || mark === JOINER) continue;
    const forms = [mark, mark + JOINER, JOINER + mark, JOINER + mark + JOINER];
    const ids = forms.map((form) => numbers.get(form));
    forms.forEach((form, at) => {
      const far = ids.map((id = Infinity, other) => [0, 1, 1, 2][at ^ other] * 2 ** 32 + id);
      numbers.set(form, Math.min(...far) % 2 ** 32);
    });
  }
}
// end: split/punctuation
// only: words/marks
// only: borrows

// Whether a word follows this without a space: an opening bracket or quote, or a dash or slash inside a word.
function leads(token) {
  return token.startsWith(MARK) ? /^▁(["']|\p{Ps}|\p{Pi})$/u.test(token) : /^(\/|\p{Ps}|\p{Pi}|\p{Pd})$/u.test(token);
}
// end: borrows
// end: words/marks
