// Text becomes token ids, in segments or not, and comes back.
// only: tokens/bpe, tokens/unigram, words/marks
const MARK = "▁"; // where a space came before a token
// end: tokens/bpe, tokens/unigram, words/marks
// only: tokens/words
const JOINER = "￭"; // where no space is beside a punctuation mark
// end: tokens/words

class Tokenizer {
  constructor(learned) {
    this.learned = learned;
    this.names = [...SPECIAL, ...learned.tokens];
    this.size = this.names.length;
    // Without the special ones: `<stop>` in a text is text.
    this.numbers = new Map(learned.tokens.map((token, at) => [token, SPECIAL.length + at]));
    // only: tokens/bpe, tokens/unigram, words/marks
    this.marked = true; // whether tokens carry the mark
    // end: tokens/bpe, tokens/unigram, words/marks
    this.joins = false; // whether there are joiners
    this.isWhole = false; // whether a word (or character) outside the vocabulary is one token
  }

  // Unicode NFC, single spaces; a mark or joiner of the text itself becomes another sign.
  normalize(text) {
    const plain = words(this.cased(text).normalize("NFC")).join(" ");
    // only: tokens/words
    if (this.joins) return plain.replaceAll(JOINER, "■");
    // end: tokens/words
    // only: tokens/bpe, tokens/unigram, words/marks
    if (this.marked) return plain.replaceAll(MARK, "_");
    // end: tokens/bpe, tokens/unigram, words/marks
    return plain;
  }

  cased(text) {
    // only: lowercase
    if (this.learned.lowercase) return Array.from(text, (letter) => letter.toLowerCase()).join("");
    // end: lowercase
    return text;
  }

  // Each token of a text: as it is spelled, and its id. Unknown words can be copied, so they are spelled too.
  read(text) {
    return this.split(this.normalize(text)).map((spelled) => {
      const id = this.numbers.get(spelled) ?? UNK;
      return { word: id === UNK && !this.isWhole ? SPECIAL[UNK] : spelled, id };
    });
  }

  name(id, sourceWords) {
    // only: borrows
    if (id >= this.size) return sourceWords[id - this.size];
    // end: borrows
    return this.names[id];
  }

  plain(token) {
    // only: tokens/words
    if (this.joins) return withoutJoiners(token);
    // end: tokens/words
    // only: tokens/bpe, tokens/unigram, words/marks
    if (this.marked && token !== MARK && token.startsWith(MARK)) return token.slice(1);
    // end: tokens/bpe, tokens/unigram, words/marks
    return token;
  }
  // only: borrows

  // Whether a space came before a token, as far as its spelling tells.
  followsSpace(token) {
    // only: tokens/words
    if (this.joins) return !token.startsWith(JOINER);
    // end: tokens/words
    // only: tokens/bpe, tokens/unigram, words/marks
    if (this.marked) return token.startsWith(MARK);
    // end: tokens/bpe, tokens/unigram, words/marks
    return this.learned.kind === "words";
  }
  // end: borrows

  tokens(ids, sourceWords) {
    return ids.map((id) => this.name(id, sourceWords));
  }
  // only: output/text

  // The text of ids; an id from `size` on is copied from the source, whose tokens are `sourceWords`.
  decode(ids, sourceWords) {
    const text = this.joined(ids.filter((id) => ![PAD, GO, STOP].includes(id)), sourceWords);
    // only: tokens/bpe, tokens/unigram, words/marks
    if (this.marked) return text.replaceAll(MARK, " ").replace(/^ /, "");
    // end: tokens/bpe, tokens/unigram, words/marks
    return text;
  }
  // only: tokens/characters, tokens/bpe, tokens/unigram

  joined(ids, sourceWords) {
    return ids.map((id) => this.name(id, sourceWords)).join("");
  }
  // end: tokens/characters, tokens/bpe, tokens/unigram
  // end: output/text
}
// only: tokens/words

// A token as it stands in the text.
const withoutJoiners = (token) => token.replace(/^￭(?=.)|(?<=.)￭$/g, "");
// end: tokens/words

FIELD.text = class {
  constructor({ name, settings, learned }) {
    this.name = name;
    this.settings = settings;
    this.tokenizer = new TOKENS[learned.kind](learned);
  }
  // only: input/text

  // What the encoder reads of an input; `by` is another tokenizer where that of the target numbers its words.
  encode(text, by = this.tokenizer) {
    if (!text.isWellFormed()) throw new Error(`the ${this.name} is not UTF-8 text (it holds half a character).`);
    if (!strip(text)) throw new Error(`the ${this.name} is empty.`);
    const { segments: kind, max_length: limit, on_long: onLong } = this.settings, END = { word: null, id: STOP };
    const all = SEGMENTS[kind](text).flatMap((part) => [...by.read(part), ...(kind === "none" ? [] : [END])]);
    const cut = onLong === null || onLong === "cut";
    if (!cut && all.length > limit) throw new Error(`the ${this.name} is longer than data.${this.name}.max_length.`);
    let row = cut ? all.slice(0, limit) : all;
    // only: segments/turns
    if (kind === "turns" && row.length < all.length) row = latest(all, limit);
    // end: segments/turns
    const read = row.filter(({ word }) => word !== null), ids = read.map(({ id }) => id), spelled = by.tokens(ids);
    if (!ids.length) throw new Error(`the ${this.name} is empty: it has no token.`);
    return { ids, words: read.map(({ word }) => word), truncated: row.length < all.length,
      shown: read.map(({ word }, at) => named(spelled[at], by.plain(word))),
      unknown: ids.filter((id) => id === UNK).length,
      // only: segments/lines, segments/sentences, segments/turns, encoder/hierarchy
      segments: kind === "none" ? [ids] : inSegments(row), inSegments: kind !== "none",
      // end: segments/lines, segments/sentences, segments/turns, encoder/hierarchy
    };
  }
  // end: input/text
  // only: output/text

  decode(ids, sourceWords = []) {
    return this.tokenizer.decode(ids, sourceWords);
  }

  tokens(ids, sourceWords = []) {
    return this.tokenizer.tokens(ids, sourceWords);
  }
  // end: output/text
  // only: copying

  // What each position of a source is numbered as when it is copied: a word, or `size` + where it first stands.
  copyable(source) {
    const plain = source.words.map((word) => this.tokenizer.plain(word)), { size } = this.tokenizer;
    return source.ids.map((id, at) => {
      if (id !== UNK) return id;
      return size + source.ids.findIndex((other, own) => other === UNK && plain[own] === plain[at]);
    });
  }
  // end: copying
  // only: borrows

  // A token of another tokenizer as this one spells it.
  adopted(token, other) {
    const { joins, marked } = this.tokenizer, spaced = other.followsSpace(token);
    // only: tokens/words
    if (joins && other.joins) return token;
    if (joins && !spaced) return JOINER + other.plain(token);
    // end: tokens/words
    // only: tokens/bpe, tokens/unigram, words/marks
    if (marked && spaced) return MARK + other.plain(token);
    // end: tokens/bpe, tokens/unigram, words/marks
    return other.plain(token);
  }
  // end: borrows
};
// only: input/text

// A token that is unknown with what stands in the text, where that is known.
const named = (token, word) => (token === SPECIAL[UNK] && word !== token ? `<unk:${word}>` : token);
// end: input/text
// only: segments/lines, segments/sentences, segments/turns, encoder/hierarchy

// The ids of each segment; one that was cut has no end.
function inSegments(row) {
  const found = [[]];
  for (const { word, id } of row) {
    if (word === null) found.push([]); else found.at(-1).push(id);
  }
  if (row.at(-1).word === null) found.pop();
  return found;
}
// end: segments/lines, segments/sentences, segments/turns, encoder/hierarchy
// only: segments/turns

// The last turns, as many whole ones as fit; the very last is cut if it does not fit alone.
function latest(row, limit) {
  const begins = [0, ...row.slice(0, -1).flatMap(({ word }, at) => (word === null ? [at + 1] : []))];
  const fits = begins.find((begin) => row.length - begin <= limit);
  return fits === undefined ? row.slice(begins.at(-1), begins.at(-1) + limit) : row.slice(fits);
}
// end: segments/turns
