// Recurrent cells: one step from U x + b (`given`) and W h + b' (`recurrent`), whose gates torch has in one vector.
const CELLS = {
  rnn: (given, recurrent) => ({ hidden: given.map((value, at) => Math.tanh(value + recurrent[at])) }),

  gru(given, recurrent, before) {
    const size = before.hidden.length, hidden = new Float32Array(size);
    for (let at = 0; at < size; at++) {
      const reset = sigmoid(given[at] + recurrent[at]), update = sigmoid(given[size + at] + recurrent[size + at]);
      const fresh = Math.tanh(given[2 * size + at] + reset * recurrent[2 * size + at]);
      hidden[at] = fresh + update * (before.hidden[at] - fresh);
    }
    return { hidden };
  },

  lstm(given, recurrent, before) {
    const size = before.hidden.length, hidden = new Float32Array(size), cell = new Float32Array(size);
    const gate = (number, at) => given[number * size + at] + recurrent[number * size + at];
    for (let at = 0; at < size; at++) {
      const kept = sigmoid(gate(1, at)) * before.cell[at];
      cell[at] = kept + sigmoid(gate(0, at)) * Math.tanh(gate(2, at));
      hidden[at] = sigmoid(gate(3, at)) * Math.tanh(cell[at]);
    }
    return { hidden, cell };
  },
};

// A stack of one kind of cell. A state is a list with { hidden, cell } for each layer.
class Recurrent {
  constructor(weights, name, { cell, layers = 1 }) {
    this.cell = CELLS[cell];
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
      cell: this.stateCount === 2 ? part(this.layers.length + at) : null,
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

  // The top layer's states over a whole sequence, from zeros.
  over(inputs) {
    let state = this.first(new Float32Array(this.size * this.stateCount * this.layers.length));
    return inputs.map((input) => {
      state = this.step(input, state);
      return state.at(-1).hidden;
    });
  }
}

const READS = { forward: ["left_to_right"], backward: ["right_to_left"], both: ["left_to_right", "right_to_left"] };

// A sequence read in one or both directions; states stand at the places of what was read.
class DirectionalRNN {
  constructor(weights, name, settings) {
    this.layers = Array.from({ length: settings.layers }, (_, depth) =>
      READS[settings.direction].map((read) => ({
        onward: read === "left_to_right",
        cells: new Recurrent(weights, `${name}.layers.${depth}.${read}`, { cell: settings.cell }),
      })));
    this.size = this.layers[0].reduce((size, { cells }) => size + cells.size, 0);
  }

  // The states, and the summary: the last state of each direction; zeros where nothing is read.
  over(inputs) {
    let states = inputs, summary = new Float32Array(this.size);
    for (const layer of this.layers) {
      if (!inputs.length) break;
      const below = states, read = layer.map(({ onward, cells }) =>
        (onward ? cells.over(below) : cells.over(below.toReversed()).reverse()));
      states = inputs.map((_, at) => concat(read.map((own) => own[at])));
      summary = concat(layer.map(({ onward }, at) => read[at].at(onward ? -1 : 0)));
    }
    return { states, summary };
  }
}

// h_j = RNN(h_{j-1}, E_enc[x_j]), in one or both directions: of a whole text, or of a part of one.
class WordsEncoder {
  constructor(weights, settings, name = "encoder") {
    this.embedding = new WordEmbedding(weights, `${name}.embedding`);
    this.rnn = new DirectionalRNN(weights, `${name}.rnn`, settings);
    this.size = this.rnn.size;
  }

  encode({ ids }) {
    const { states, summary } = this.rnn.over(ids.map((id) => this.embedding.of(id)));
    return { memory: states, summary, size: this.size };
  }
}
