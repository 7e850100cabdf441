// A stack of one kind of cell, which makes one step from U x + b (`given`) and W h + b' (`recurrent`), whose gates torch has
// in one vector. A state is a list with { hidden, cell } for each layer.
class Recurrent {
  constructor(weights, name, { cell, layers = 1 }) {
    this.cell = CELL[known(CELL, cell)];
    this.stateCount = cell === "lstm" ? 2 : 1;
    this.layers = Array.from({ length: layers }, (_, layer) => ({
      below: weights.tensor(`${name}.stack.weight_ih_l${layer}`),
      belowBias: weights.vector(`${name}.stack.bias_ih_l${layer}`),
      own: weights.tensor(`${name}.stack.weight_hh_l${layer}`),
      ownBias: weights.vector(`${name}.stack.bias_hh_l${layer}`),
    }));
    this.size = this.layers[0].own.columns;
  }

  // The initial state from one long vector: the hidden vectors of all layers, then their memory cells.
  first(vector) {
    const part = (number) => vector.subarray(number * this.size, (number + 1) * this.size);
    return this.layers.map((_, at) => ({
      hidden: part(at),
      // only: cell/lstm
      cell: this.stateCount === 2 ? part(this.layers.length + at) : null,
      // end: cell/lstm
    }));
  }

  step(input, state) {
    let below = input;
    return this.layers.map((layer, at) => {
      const given = product(layer.below, below, layer.belowBias);
      const after = this.cell(given, product(layer.own, state[at].hidden, layer.ownBias), state[at]);
      below = after.hidden;
      return after;
    });
  }
  // only: encoder/text, encoder/pair, encoder/hierarchy, encoder/wide_deep, encoder/points, encoder/image_question, encoder/video

  // The top layer's states over a whole sequence, from zeros.
  over(inputs) {
    let state = this.first(new Float32Array(this.size * this.stateCount * this.layers.length));
    return inputs.map((input) => {
      state = this.step(input, state);
      return state.at(-1).hidden;
    });
  }
  // end: encoder/text, encoder/pair, encoder/hierarchy, encoder/wide_deep, encoder/points, encoder/image_question, encoder/video
}
