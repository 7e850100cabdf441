// For each width: a ← relu(GroupNorm(W * a + b)) at every second cell, then a ← relu(GroupNorm(W' * a + b')). At the end
// v = relu(LayerNorm(V [a_1, …, a_S] + b_v)). The first convolution is also given the coordinates x and y.
BACKBONE.small = class {
  constructor(weights, name) {
    this.layers = [];
    for (let block = 0; weights.has(`${name}.blocks.${block}.0.weight`); block++) {
      for (const [at, kernel, stride] of [[0, 3, 2], [3, 5, 1]]) {
        const own = `${name}.blocks.${block}.${at}`, norm = `${name}.blocks.${block}.${at + 1}`;
        this.layers.push({
          weight: weights.vector(`${own}.weight`), bias: weights.vector(`${own}.bias`),
          how: { kernel, stride, before: (kernel - 1) / 2 },
          norm: { scale: weights.vector(`${norm}.weight`), shift: weights.vector(`${norm}.bias`) },
        });
      }
    }
    this.vector = new Linear(weights, `${name}.vector`);
    this.even = new LayerNorm(weights, `${name}.even`);
  }

  of({ values, height, width }) {
    const place = (at) => 2 * at / (width - 1) - 1, x = new Float32Array(height * width), y = new Float32Array(height * width);
    x.forEach((_, at) => { [x[at], y[at]] = [place(at % width), place(Math.floor(at / width))]; });
    let maps = { values: concat([values, x, y]), channels: 5, height, width };
    for (const { weight, bias, how, norm } of this.layers) maps = clipped(groupNorm(convolved(maps, weight, bias, how), norm));
    return { maps, vector: this.even.of(this.vector.of(maps.values)).map((value) => Math.max(value, 0)) };
  }
};

// Mean 0 and variance 1 over the cells of some channels at a time, of which there are at most eight groups.
function groupNorm(maps, { scale, shift }) {
  const { values, channels, height, width } = maps, cells = height * width;
  let groups = 8;
  while (channels % groups) groups /= 2; // the greatest common divisor of both
  for (let group = 0, size = values.length / groups; group < groups; group++) {
    const from = group * size, [mean, spread] = moments(values, from, from + size);
    for (let at = from; at < from + size; at++) {
      const channel = Math.floor(at / cells);
      values[at] = (values[at] - mean) / spread * scale[channel] + shift[channel];
    }
  }
  return maps;
}
