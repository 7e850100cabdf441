// h_j = norm(r_j) for each cell of the image, h_T = norm(v) for the whole, with r_1..r_S, v = CNN(I).
ENCODER.image = class {
  made = new WeakMap(); // of an image that is asked about again

  constructor(weights, settings, name = "encoder") {
    this.visual = new VisualInput(weights, settings.backbone, `${name}.backbone`);
    this.cells = new LayerNorm(weights, `${name}.cells`);
    this.whole = new LayerNorm(weights, `${name}.whole`);
  }

  encode(image) {
    if (!this.made.has(image)) this.made.set(image, this.encoded(image.frames[0]));
    return this.made.get(image);
  }

  encoded(square) {
    const { maps, vector } = this.visual.of(square), memory = cellsOf(maps).map((cell) => this.cells.of(cell));
    return { memory, summary: this.whole.of(vector), size: maps.channels, grid: [maps.height, maps.width] };
  }
};

// The vectors of all cells, row by row.
function cellsOf({ values, channels, height, width }) {
  const cells = height * width;
  return Array.from({ length: cells }, (_, cell) => Float32Array.from({ length: channels }, (_, at) => values[at * cells + cell]));
}
