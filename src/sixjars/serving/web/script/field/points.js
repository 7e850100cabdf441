// Points, written as text: `0.1,0.7 0.3,0.2`.
const NUMBER = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i, HOW = "write points like 0.12,0.7 0.3,0.25.";
const FARTHEST = 3.4e38; // that a 32-bit number goes from zero

FIELD.points = class {
  constructor({ name, settings }) {
    this.name = name;
    this.dimensions = settings.dimensions;
    this.last = []; // what was read last, and is drawn
    this.hint = this.dimensions === 1 ? "numbers with spaces between them: 3 1 2" : "points, like 0.12,0.7 0.3,0.25";
  }

  encode(text) {
    const shown = words(text);
    this.last = [];
    const points = shown.map((point) => Float32Array.from(point.split(","), (one) => this.number(one)));
    if (!points.length) throw new Error(`the ${this.name}: there is no point; ${HOW}`);
    const wrong = points.find((point) => point.length !== this.dimensions);
    if (wrong) throw new Error(`a point has ${wrong.length} coordinates, but this model reads ${this.dimensions}.`);
    this.last = points.map((point) => Array.from(point));
    return { points, shown };
  }

  // Of two dimensions, the plane is drawn on: a click sets a point, dragging moves one, and what is typed follows.
  follow(area, views) {
    if (this.dimensions !== 2) return;
    let held = -1, began = null;
    const put = (event) => {
      const svg = views.querySelector("[role=tabpanel]:not([hidden]) .tour") || views.querySelector(".tour");
      const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
      const within = (value) => Math.min(Math.max(value, 0), 440) / 440, spelled = this.drawnOf(area);
      const { left, low, spread } = frameOf(spelled.length ? this.last : []);
      const place = [left + spread * within(at.x - 30), low + spread * within(470 - at.y)];
      spelled[held] = place.map((value) => +value.toPrecision(4)).join(",");
      area.value = spelled.join(" ");
      area.dispatchEvent(new Event("input"));
    };
    views.addEventListener("pointerdown", (event) => {
      const spot = event.target.closest("[data-s]");
      if (!event.target.closest(".tour")) return;
      [held, began] = [spot ? +spot.dataset.s : this.drawnOf(area).length, spot ? event : null];
      if (!spot) put(event);
    });
    window.addEventListener("pointermove", (event) => { // a small move is a click
      if (began && Math.hypot(event.clientX - began.clientX, event.clientY - began.clientY) > 4) began = null;
      if (held >= 0 && !began) put(event);
    });
    window.addEventListener("pointerup", () => { held = -1; });
  }

  // The points as they are typed; none where they could not be read, for then none are drawn.
  drawnOf(area) {
    return this.last.length ? words(area.value) : [];
  }

  // What is shown before there is a point.
  get empty() {
    return this.dimensions === 2 ? tour({ tokens: [], text: "", points: [] }) : [];
  }

  number(spelled) {
    if (!NUMBER.test(spelled)) throw new Error(`the ${this.name}: '${spelled}' is not a number; ${HOW}`);
    if (Math.abs(Number(spelled)) <= FARTHEST) return Number(spelled);
    throw new Error(`the ${this.name}: '${spelled}' is not a finite 32-bit number.`);
  }
};
