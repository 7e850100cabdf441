// h_j = RNN(h_{j-1}, x_j), with x_j the vector of frame j, the features of the clip around it, or both.
const CLIP = 5;

ENCODER.video = class {
  made = new WeakMap();

  constructor(weights, settings) {
    this.visual = new VisualInput(weights, settings.backbone, "encoder.backbone");
    this.reads = settings.reads;
    this.clips = settings.reads === "frames" ? null
      : { weight: weights.vector("encoder.clips.weight"), bias: weights.vector("encoder.clips.bias") };
    this.norm = new LayerNorm(weights, "encoder.norm");
    this.rnn = new DirectionalRNN(weights, "encoder.rnn", settings);
  }

  async encode(video) {
    if (!this.made.has(video)) this.made.set(video, await this.encoded(video));
    return this.made.get(video);
  }

  async encoded({ frames }) {
    const seen = [];
    for (const frame of frames) {
      seen.push(this.visual.of(frame));
      await new Promise((done) => { setTimeout(done); }); // the page may be used meanwhile
    }
    const inputs = seen.map(({ vector }, at) => {
      const clip = this.clips ? this.clip(seen.map(({ maps }) => maps), at) : [];
      return this.norm.of(this.reads === "clips" ? clip : concat([vector, clip]));
    });
    const { states, summary } = this.rnn.over(inputs);
    return { memory: states, summary, size: this.rnn.size };
  }

  // κ_j = mean over the cells of relu(W_3 * r)_j, a convolution over five frames; beyond the video all is zero.
  clip(all, middle) {
    const { channels, height, width } = all[0], cells = height * width, values = new Float32Array(channels * CLIP * cells);
    for (let own = 0; own < CLIP; own++) {
      const maps = all[middle + own - (CLIP - 1) / 2];
      for (let at = 0; maps && at < channels; at++) {
        values.set(maps.values.subarray(at * cells, (at + 1) * cells), (at * CLIP + own) * cells);
      }
    }
    const stack = { values, channels: channels * CLIP, height, width };
    const found = clipped(convolved(stack, this.clips.weight, this.clips.bias, { kernel: 3, before: 1 })).values;
    return Float32Array.from(this.clips.bias, (_, at) => found.subarray(at * cells, (at + 1) * cells).reduce((sum, one) => sum + one, 0) / cells);
  }
};
