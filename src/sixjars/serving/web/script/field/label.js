// Labels: a closed list.
FIELD.label = class {
  constructor({ settings, learned }) {
    this.names = learned.labels;
    this.multiLabel = settings.multi_label;
  }

  decode(ids) {
    const names = this.tokens(ids);
    // only: multi_label
    names.sort(byCodePoints);
    // end: multi_label
    return names.join(", ");
  }

  tokens(ids) {
    return ids.map((id) => this.names[id]);
  }
};
// only: multi_label

// As Python sorts texts; JavaScript compares halves of characters.
function byCodePoints(one, two) {
  const [letters, others] = [one, two].map((text) => Array.from(text, (letter) => letter.codePointAt(0)));
  const at = letters.findIndex((letter, own) => letter !== others[own]);
  return at < 0 ? letters.length - others.length : letters[at] - (others[at] ?? -1);
}
// end: multi_label
