// Words, that end at punctuation too, or at spaces alone.
const PUNCTUATION = /(▁?(?!▁)[\p{P}\p{S}])/u; // one mark or symbol, and the mark of a space before it

TOKENS.words = class extends Tokenizer {
  constructor(learned) {
    super(learned);
    this.isWhole = true;
    this.marked = learned.split === "punctuation";
  }

  split(text) {
    const found = words(text);
    return this.marked ? found.flatMap((word) => (MARK + word).split(PUNCTUATION).filter((token) => token)) : found;
  }

  tokens(ids, sourceWords) {
    return super.tokens(ids, sourceWords).map((token) => this.plain(token));
  }
  // only: output/text

  joined(ids, sourceWords) {
    const tokens = ids.map((id) => this.name(id, sourceWords));
    if (!this.marked) return tokens.join(" ");
    return ids.map((id, at) => this.spaced(id, tokens[at], tokens[at - 1] || "", sourceWords)).join("");
  }

  // A token as it is joined to the one before it.
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
  // end: output/text
};
// only: borrows

// Whether a word follows this without a space: an opening bracket or quote, or a dash or slash inside a word.
function leads(token) {
  return token.startsWith(MARK) ? /^▁(["']|\p{Ps}|\p{Pi})$/u.test(token) : /^(\/|\p{Ps}|\p{Pi}|\p{Pd})$/u.test(token);
}
// end: borrows
