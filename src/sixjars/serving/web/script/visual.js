// What convolutional networks compute. Maps are { values, channels, height, width }, with `values` (C, H, W).
const STEADY = 1e-5;

// γ (x - μ) / sqrt(σ² + ε) + δ, over all that is given.
class LayerNorm {
  constructor(weights, name) {
    this.scale = weights.vector(`${name}.weight`);
    this.shift = weights.vector(`${name}.bias`);
  }

  of(vector) {
    const [mean, spread] = moments(vector, 0, vector.length);
    return vector.map((value, at) => (value - mean) / spread * this.scale[at] + this.shift[at]);
  }
}

function moments(values, from, to) {
  let sum = 0, squares = 0;
  for (let at = from; at < to; at++) sum += values[at];
  const mean = sum / (to - from);
  for (let at = from; at < to; at++) squares += (values[at] - mean) ** 2;
  return [mean, Math.sqrt(squares / (to - from) + STEADY)];
}

function clipped(maps, most = Infinity) {
  const { values } = maps;
  for (let at = 0; at < values.length; at++) values[at] = Math.min(Math.max(values[at], 0), most);
  return maps;
}

// W * x + b at every `stride`-th cell. `weight` has (C', C / groups, k, k) numbers; `before` zeros lie before each side.
function convolved(maps, weight, bias, { kernel, stride = 1, before = 0, groups = 1 }) {
  const outputs = bias.length, high = Math.ceil(maps.height / stride), wide = Math.ceil(maps.width / stride), cells = high * wide;
  const columns = kernel === 1 && stride === 1 ? maps.values : unfolded(maps, { kernel, stride, before, high, wide });
  const depth = maps.channels / groups * kernel * kernel, values = new Float32Array(outputs * cells), sums = new Float64Array(cells);
  for (let output = 0; output < outputs; output++) {
    const first = Math.floor(output * groups / outputs) * depth, own = output * depth;
    sums.fill(bias[output]);
    let at = 0;
    for (; at + 3 < depth; at += 4) { // four at once: the sums are read and written less often
      const [a, b, c, d] = weight.subarray(own + at, own + at + 4), from = (first + at) * cells;
      for (let cell = 0, i = from, j = i + cells, k = j + cells, l = k + cells; cell < cells; cell++, i++, j++, k++, l++) {
        sums[cell] += a * columns[i] + b * columns[j] + c * columns[k] + d * columns[l];
      }
    }
    for (; at < depth; at++) {
      const share = weight[own + at], from = (first + at) * cells;
      for (let cell = 0; cell < cells; cell++) sums[cell] += share * columns[from + cell];
    }
    values.set(sums, output * cells);
  }
  return { values, channels: outputs, height: high, width: wide };
}

// For each channel and each place in the kernel, what lies there for every output cell.
function unfolded({ values, channels, height, width }, { kernel, stride, before, high, wide }) {
  const found = new Float32Array(channels * kernel * kernel * high * wide);
  let at = 0;
  for (let channel = 0; channel < channels; channel++) {
    for (let down = -before; down < kernel - before; down++) {
      for (let right = -before; right < kernel - before; right++) {
        for (let row = down, end = down + high * stride; row < end; row += stride, at += wide) {
          if (row < 0 || row >= height) continue;
          for (let own = 0, column = right; own < wide && column < width; own++, column += stride) {
            if (column >= 0) found[at + own] = values[(channel * height + row) * width + column];
          }
        }
      }
    }
  }
  return found;
}

// Colours from -1 to 1.
function coloured(square) {
  const side = Math.sqrt(square.length / 3);
  return { values: Float32Array.from(square, (value) => value / 127.5 - 1), channels: 3, height: side, width: side };
}

// r_1..r_S, v = CNN(I): the maps and the vector of one square of pixels.
class VisualInput {
  constructor(weights, { name: kind, layer }, name) {
    this.backbone = new BACKBONE[known(BACKBONE, kind)](weights, `${name}.backbone`, layer);
  }

  of(square) {
    return this.backbone.of(coloured(square));
  }
}
