// The weights of a model, and what a recurrent network computes with them. Vectors have 32-bit numbers; sums
// are accumulated in 64 bits and rounded once, so they are at least as exact as torch's.
"use strict";

// Filled by the files of the components that this model has.
const ENCODER = {}, BRIDGE = {}, DECODER = {}, CELL = {}, BACKBONE = {}, FIELD = {}, TOKENS = {};
const SEGMENTS = {}, SEARCH = {}, VIEW = [];
// only: input/image, input/video
let FIRST = null; // what comes before an answer, where there are files
// end: input/image, input/video
const SPECIAL = ["<pad>", "<go>", "<stop>", "<unk>"], PAD = 0, GO = 1, STOP = 2, UNK = 3;

class Weights {
  // What the gzip stream of a file holds: the length of the header, the header, and four planes of bytes.
  static async from(file) {
    if (!globalThis.DecompressionStream) throw new Error("This browser is too old to open the model: it has no DecompressionStream.");
    try {
      return new Weights(await new Response(file.stream().pipeThrough(new DecompressionStream("gzip"))).arrayBuffer());
    } catch {
      throw new Error("This file is not a model that `sixjars export --web` wrote, or not all of it.");
    }
  }

  constructor(buffer) {
    const size = new DataView(buffer).getUint32(0, true), begin = 4 + size, count = (buffer.byteLength - begin) / 4;
    this.header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, size)));
    const [one, two, three, four] = [0, 1, 2, 3].map((plane) => new Uint8Array(buffer, begin + plane * count, count));
    const bits = new Uint32Array(count); // turned left by one in the file, where a byte holds a whole exponent
    for (let at = 0; at < count; at++) {
      const turned = (one[at] << 24) | (two[at] << 16) | (three[at] << 8) | four[at];
      bits[at] = (turned >>> 1) | (turned << 31);
    }
    let from = 0;
    this.tensors = new Map(Object.entries(this.header.tensors).map(([name, shape]) => {
      const length = shape.reduce((product, side) => product * side, 1);
      from += length;
      return [name, { values: new Float32Array(bits.buffer, 4 * (from - length), length), shape }];
    }));
  }

  has(name) {
    return this.tensors.has(name);
  }

  tensor(name) {
    if (!this.has(name)) throw new Error(`This model has no weights called ${name}.`);
    const { values, shape } = this.tensors.get(name);
    return { values, shape, rows: shape[0], columns: shape[1] };
  }

  vector(name) {
    return this.tensor(name).values;
  }
}

// only: start/linear, attends, decoder/label, encoder/hierarchy, input/image, input/video, input/points
// W x + b, with the weights `name.weight` and, where there is one, `name.bias`.
class Linear {
  constructor(weights, name) {
    this.matrix = weights.tensor(`${name}.weight`);
    this.bias = weights.has(`${name}.bias`) ? weights.vector(`${name}.bias`) : null;
  }

  of(vector) {
    return product(this.matrix, vector, this.bias);
  }
}

// end: start/linear, attends, decoder/label, encoder/hierarchy, input/image, input/video, input/points
function product({ values, rows, columns }, vector, bias) {
  const found = new Float32Array(rows);
  for (let row = 0, at = 0; row < rows; row++) {
    let one = bias ? bias[row] : 0, two = 0, three = 0, four = 0, column = 0;
    for (; column + 3 < columns; column += 4, at += 4) { // four sums side by side: a processor adds them at once
      one += values[at] * vector[column];
      two += values[at + 1] * vector[column + 1];
      three += values[at + 2] * vector[column + 2];
      four += values[at + 3] * vector[column + 3];
    }
    for (; column < columns; column++, at++) one += values[at] * vector[column];
    found[row] = one + two + three + four;
  }
  return found;
}

// only: cell/gru, cell/lstm, copying
const sigmoid = (value) => 1 / (1 + Math.exp(-value));
// end: cell/gru, cell/lstm, copying
const tanh = (vector) => vector.map(Math.tanh);

// only: encoder/pair, bridge/attention, bridge/location, bridge/two_level, decoder/pointer
function dot(one, two) {
  let sum = 0;
  for (let at = 0; at < one.length; at++) sum += one[at] * two[at];
  return sum;
}

// end: encoder/pair, bridge/attention, bridge/location, bridge/two_level, decoder/pointer
function concat(vectors) {
  const found = new Float32Array(vectors.reduce((size, vector) => size + vector.length, 0));
  let at = 0;
  for (const vector of vectors) {
    found.set(vector, at);
    at += vector.length;
  }
  return found;
}

// only: bridge/attention, bridge/location, bridge/two_level, bridge/pooling, encoder/pair, encoder/hierarchy, encoder/bag, encoder/wide_deep
// Σ_j w_j v_j of vectors that have `size` numbers each.
function weighted(weights, vectors, size) {
  const found = new Float64Array(size);
  vectors.forEach((vector, at) => {
    for (let own = 0; own < size; own++) found[own] += weights[at] * vector[own];
  });
  return Float32Array.from(found);
}

// end: bridge/attention, bridge/location, bridge/two_level, bridge/pooling, encoder/pair, encoder/hierarchy, encoder/bag, encoder/wide_deep
function highest(values) {
  let most = -Infinity;
  for (const value of values) if (value > most) most = value;
  return most;
}

// only: attends, searches, encoder/pair, encoder/hierarchy
// A score of -Infinity has no share; where all have it, nothing has one.
function softmax(scores) {
  const most = highest(scores);
  if (most === -Infinity) return new Float32Array(scores.length);
  const raised = Float64Array.from(scores, (score) => Math.exp(score - most));
  const whole = raised.reduce((sum, value) => sum + value, 0);
  return Float32Array.from(raised, (value) => value / whole);
}

// end: attends, searches, encoder/pair, encoder/hierarchy
function logSoftmax(scores) {
  const most = highest(scores);
  let whole = 0;
  for (const score of scores) whole += Math.exp(score - most);
  const shift = most + Math.log(whole);
  return Float32Array.from(scores, (score) => score - shift);
}

// only: input/text, output/text
// A vector for each token.
class WordEmbedding {
  constructor(weights, name) {
    this.table = weights.tensor(`${name}.table.weight`);
    // only: frozen
    if (!weights.has(`${name}.fixed`)) return; // frozen vectors take the place of learned ones where there are some
    const fixed = weights.vector(`${name}.fixed`), isFixed = weights.vector(`${name}.is_fixed`);
    const { columns } = this.table;
    const values = this.table.values.map((value, at) => (isFixed[Math.floor(at / columns)] ? fixed[at] : value));
    this.table = { ...this.table, values };
    // end: frozen
  }

  of(id) {
    const { values, columns } = this.table;
    return values.subarray(id * columns, (id + 1) * columns);
  }
}
// end: input/text, output/text
