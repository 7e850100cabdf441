// The weights of a safetensors file, and what a recurrent network computes with them. Vectors have 32-bit numbers; sums
// are accumulated in 64 bits and rounded once, so they are at least as exact as torch's.
"use strict";

// Filled by the files of the components that this model has.
const ENCODER = {}, BRIDGE = {}, DECODER = {}, FIELD = {}, TOKENS = {}, SEGMENTS = {}, SEARCH = {};
const SPECIAL = ["<pad>", "<go>", "<stop>", "<unk>"], PAD = 0, GO = 1, STOP = 2, UNK = 3;

class Weights {
  constructor(buffer) {
    const size = buffer.byteLength < 8 ? Infinity : Number(new DataView(buffer).getBigUint64(0, true));
    if (size > buffer.byteLength - 8) throw new Error("This file is not a safetensors file, or not all of it.");
    this.header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 8, size)));
    this.notes = this.header.__metadata__ || {};
    this.buffer = buffer;
    this.begin = 8 + size;
  }

  has(name) {
    return Object.hasOwn(this.header, name);
  }

  tensor(name) {
    if (!this.has(name)) throw new Error(`This model has no weights called ${name}.`);
    const { dtype, shape, data_offsets: [from, to] } = this.header[name];
    const Kind = { F32: Float32Array, BOOL: Uint8Array }[dtype], bytes = Kind.BYTES_PER_ELEMENT;
    const aligned = (this.begin + from) % bytes === 0;
    const values = aligned
      ? new Kind(this.buffer, this.begin + from, (to - from) / bytes)
      : new Kind(this.buffer.slice(this.begin + from, this.begin + to));
    return { values, rows: shape[0], columns: shape[1] };
  }

  vector(name) {
    return this.tensor(name).values;
  }
}

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

const sigmoid = (value) => 1 / (1 + Math.exp(-value));
const tanh = (vector) => vector.map(Math.tanh);

function dot(one, two) {
  let sum = 0;
  for (let at = 0; at < one.length; at++) sum += one[at] * two[at];
  return sum;
}

function concat(vectors) {
  const found = new Float32Array(vectors.reduce((size, vector) => size + vector.length, 0));
  let at = 0;
  for (const vector of vectors) {
    found.set(vector, at);
    at += vector.length;
  }
  return found;
}

// Σ_j w_j v_j of vectors that have `size` numbers each.
function weighted(weights, vectors, size) {
  const found = new Float64Array(size);
  vectors.forEach((vector, at) => {
    for (let own = 0; own < size; own++) found[own] += weights[at] * vector[own];
  });
  return Float32Array.from(found);
}

function highest(values) {
  let most = -Infinity;
  for (const value of values) if (value > most) most = value;
  return most;
}

// A score of -Infinity has no share; where all have it, nothing has one.
function softmax(scores) {
  const most = highest(scores);
  if (most === -Infinity) return new Float32Array(scores.length);
  const raised = Float64Array.from(scores, (score) => Math.exp(score - most));
  const whole = raised.reduce((sum, value) => sum + value, 0);
  return Float32Array.from(raised, (value) => value / whole);
}

function logSoftmax(scores) {
  const most = highest(scores);
  let whole = 0;
  for (const score of scores) whole += Math.exp(score - most);
  const shift = most + Math.log(whole);
  return Float32Array.from(scores, (score) => score - shift);
}

// A vector for each token; with frozen vectors, those take the place of the learned ones where there are some.
class WordEmbedding {
  constructor(weights, name) {
    this.table = weights.tensor(`${name}.table.weight`);
    if (!weights.has(`${name}.fixed`)) return;
    const fixed = weights.vector(`${name}.fixed`), isFixed = weights.vector(`${name}.is_fixed`);
    const { columns } = this.table;
    const values = this.table.values.map((value, at) => (isFixed[Math.floor(at / columns)] ? fixed[at] : value));
    this.table = { ...this.table, values };
  }

  of(id) {
    const { values, columns } = this.table;
    return values.subarray(id * columns, (id + 1) * columns);
  }
}
