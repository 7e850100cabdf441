// Positions of the input, counted from 0.
FIELD.order = class {
  decode(ids) {
    return this.tokens(ids.filter((id) => id >= SPECIAL.length)).join(" ");
  }

  tokens(ids) {
    return ids.map((id) => (id < SPECIAL.length ? SPECIAL[id] : String(id - SPECIAL.length)));
  }
};
