// Words, that end at punctuation too, or at spaces alone.
const PUNCTUATION = /([\p{P}\p{S}])/u; // one punctuation mark or symbol
const MARKED_PUNCTUATION = /(▁?(?!▁)[\p{P}\p{S}])/u; // and the mark of a space before it

TOKENS.words = class extends Tokenizer {
  constructor(learned) {
    super(learned);
    this.isWhole = true;
    const ends = learned.split === "punctuation";
    this.marked = ends && learned.format === 2; // a run of an older version: words carry marks too
    this.joins = ends && !this.marked;
    if (this.joins) addStandIns(this.numbers);
  }

  split(text) {
    const found = words(text);
    if (this.joins) return found.flatMap((word) => withJoiners(word.split(PUNCTUATION).filter((part) => part)));
    return this.marked ? found.flatMap((word) => (MARK + word).split(MARKED_PUNCTUATION).filter((part) => part)) : found;
  }

  tokens(ids, sourceWords) {
    return super.tokens(ids, sourceWords).map((token) => this.plain(token));
  }
  // only: output/text

  joined(ids, sourceWords) {
    const tokens = ids.map((id) => this.name(id, sourceWords));
    if (this.joins) return textOf(this.asInSource(ids, tokens, sourceWords));
    if (!this.marked) return tokens.join(" ");
    return ids.map((id, at) => this.spaced(id, tokens[at], tokens[at - 1] || "", sourceWords)).join("");
  }

  // Tokens, where those beside a copied word may be spelled as beside it in the source: see `_as_in_source` of Python.
  asInSource(ids, tokens, sourceWords) {
    const spelled = [...tokens];
    // only: borrows
    ids.forEach((id, at) => {
      const place = id - this.size;
      if (place < 0) return;
      const goesOn = at > 0 && place > 0 && tokens[at - 1] === sourceWords[place - 1];
      if (/[\p{L}\p{N}]/u.test(tokens[at]) && !goesOn) spelled[at] = withoutJoiners(tokens[at]);
      for (const step of [-1, 1]) {
        const form = sourceWords[place + step], standsIn = this.numbers.get(form);
        if (standsIn !== undefined && standsIn === ids[at + step]) spelled[at + step] = form;
      }
    });
    // end: borrows
    return spelled;
  }

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
  // end: output/text
};

// The parts of a word between spaces; a mark has a joiner before it, and after it where letters follow.
function withJoiners(parts) {
  return parts.map((part, at) => {
    if (!PUNCTUATION.test(part)) return part;
    const follows = at + 1 < parts.length && !PUNCTUATION.test(parts[at + 1]);
    return (at ? JOINER : "") + part + (follows ? JOINER : "");
  });
}

// Gives each form that a vocabulary lacks of a mark that it has the number of the nearest form that it has.
function addStandIns(numbers) {
  const marks = new Map();
  for (const token of numbers.keys()) {
    const mark = withoutJoiners(token);
    if (Array.from(mark).length === 1 && mark !== JOINER) marks.set(mark, [...(marks.get(mark) || []), token]);
  }
  const isApart = (form, other, has) => form[has](JOINER) !== other[has](JOINER);
  const distance = (form, other) => isApart(form, other, "startsWith") + isApart(form, other, "endsWith");
  for (const [mark, known] of marks) {
    for (const form of ["", JOINER].flatMap((left) => ["", JOINER].map((right) => left + mark + right))) {
      const nearest = known.reduce((best, other) => (distance(form, other) < distance(form, best) ? other : best));
      if (!known.includes(form)) numbers.set(form, numbers.get(nearest));
    }
  }
}
// only: output/text

// A space between two tokens, unless either has a joiner there.
const textOf = (tokens) => tokens.join(" ").replace(/￭? ￭|￭ /g, "").replace(/^￭+|￭+$/g, "");
// end: output/text
// only: borrows

// Whether a word follows this without a space: an opening bracket or quote, or a dash or slash inside a word.
function leads(token) {
  return token.startsWith(MARK) ? /^▁(["']|\p{Ps}|\p{Pi})$/u.test(token) : /^(\/|\p{Ps}|\p{Pi}|\p{Pd})$/u.test(token);
}
// end: borrows
