// EfficientNet-Lite0 (Tan & Le 2019): v = mean over cells of relu6(W_head * block15(… block0(relu6(W_stem * I)))). A
// convolution has the normalisation that it was trained with: γ (W * x - μ) / sqrt(σ² + ε) + β.
const HALVING = ["stem", "block1", "block3", "block5", "block11"]; // the layers whose stride is 2

class Normalised {
  constructor(weights, name, stride = 1) {
    const { values, shape: [outputs, inputs, kernel] } = weights.tensor(`${name}.weight`);
    const part = (own) => weights.vector(`${name}.${own}`), mean = part("mean"), shift = part("shift"), variance = part("variance");
    const gain = part("scale").map((scale, at) => scale / Math.sqrt(variance[at] + 1e-3)), each = values.length / outputs;
    this.weight = values.map((value, at) => value * gain[Math.floor(at / each)]);
    this.bias = shift.map((value, at) => value - mean[at] * gain[at]);
    this.how = { kernel, stride, inputs };
  }

  of(maps) {
    const { kernel, stride, inputs } = this.how, outer = (Math.ceil(maps.height / stride) - 1) * stride + kernel - maps.height;
    const before = Math.floor(Math.max(outer, 0) / 2); // an odd zero comes after
    return convolved(maps, this.weight, this.bias, { kernel, stride, before, groups: maps.channels / inputs });
  }
}

BACKBONE.efficientnet_lite0 = class {
  constructor(weights, name, layer) {
    this.layer = layer ?? "block10";
    const plain = (own) => new Normalised(weights, `${name}.${own}`, HALVING.includes(own) ? 2 : 1);
    const stem = plain("stem"), head = plain("head");
    this.layers = [["stem", (maps) => clipped(stem.of(maps), 6)]];
    for (let at = 0; weights.has(`${name}.block${at}.project.weight`); at++) {
      this.layers.push([`block${at}`, this.block(weights, `${name}.block${at}`, HALVING.includes(`block${at}`) ? 2 : 1)]);
    }
    this.layers.push(["head", (maps) => clipped(head.of(maps), 6)]);
  }

  // Widens each cell, mixes each channel over its neighbours, narrows; and adds its input, where it fits.
  block(weights, name, stride) {
    const expand = weights.has(`${name}.expand.weight`) ? new Normalised(weights, `${name}.expand`) : null;
    const depthwise = new Normalised(weights, `${name}.depthwise`, stride), project = new Normalised(weights, `${name}.project`);
    return (maps) => {
      const wide = expand ? clipped(expand.of(maps), 6) : maps, found = project.of(clipped(depthwise.of(wide), 6));
      if (stride === 1 && found.channels === maps.channels) maps.values.forEach((value, at) => { found.values[at] += value; });
      return found;
    };
  }

  of(pixels) {
    let late = pixels, maps = pixels;
    for (const [name, layer] of this.layers) {
      late = layer(late);
      if (name === this.layer) maps = late;
    }
    const cells = late.height * late.width, sum = (at) => late.values.subarray(at * cells, (at + 1) * cells).reduce((all, one) => all + one, 0);
    return { maps, vector: Float32Array.from({ length: late.channels }, (_, at) => sum(at) / cells) };
  }
};
