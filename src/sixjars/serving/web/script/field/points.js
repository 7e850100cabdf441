// Points, written as text: `0.1,0.7 0.3,0.2`.
const NUMBER = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i, HOW = "write points like 0.12,0.7 0.3,0.25.";
const FARTHEST = 3.4e38; // that a 32-bit number goes from zero

FIELD.points = class {
  constructor({ name, settings }) {
    this.name = name;
    this.dimensions = settings.dimensions;
  }

  encode(text) {
    const shown = words(text);
    const points = shown.map((point) => Float32Array.from(point.split(","), (one) => this.number(one, point)));
    if (!points.length) throw new Error(`the ${this.name}: there is no point; ${HOW}`);
    const wrong = points.find((point) => point.length !== this.dimensions);
    if (wrong) throw new Error(`a point has ${wrong.length} coordinates, but this model reads ${this.dimensions}.`);
    return { points, shown };
  }

  number(spelled, point) {
    if (!NUMBER.test(spelled)) throw new Error(`the ${this.name}: '${spelled}' of point '${point}' is not a number; ${HOW}`);
    if (Math.abs(Number(spelled)) <= FARTHEST) return Number(spelled);
    throw new Error(`the ${this.name}: '${spelled}' is not a finite 32-bit number.`);
  }
};
