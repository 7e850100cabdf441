TOKENS.characters = class extends Tokenizer {
  constructor(learned) {
    super(learned);
    this.isWhole = true;
    this.marked = false;
  }

  split(text) {
    return Array.from(text);
  }

  tokens(ids, sourceWords) {
    return super.tokens(ids, sourceWords).map((token) => (token === " " ? "␣" : token));
  }
};
