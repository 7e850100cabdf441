// Recurrent networks over whole sequences.
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

// only: input/text
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
// end: input/text
