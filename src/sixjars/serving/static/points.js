// Points, to click and drag in a plane where they have two coordinates. The text is what counts, so all of it can be
// done without a mouse.
const AT_FIRST = 8, EDGE = 20, SIDE = 360; // points to begin with; of a drawing of 400 by 400

function pointsControl({ name, column, settings }, changed) {
  const size = settings.dimensions, spelled = (point) => point.map((number) => +number.toFixed(3)).join(",");
  const how = { 1: "numbers with spaces between them", 2: "x,y with a space between points" }[size]
    || `${size} coordinates each, with a space between points`;
  const placeholder = Array.from("abc", () => Array(size).fill("0.5")).join(" ");
  const area = make("textarea", { name, rows: 3, spellcheck: false, placeholder });
  const write = (points) => { area.value = points.map(spelled).join(" "); changed(); };
  const read = () => area.value.split(/\s+/).map((point) => point.split(",")).filter((point) =>
    point.length === size && point.every((part) => part && Number.isFinite(+part))).map((point) => point.map(Number));
  const plane = size === 2 ? planeOf(read, write) : { element: "", draw() {}, link() {} };
  const put = (points) => { write(points); plane.draw(); };
  const random = () => put(Array.from({ length: AT_FIRST }, () => Array.from({ length: size }, Math.random)));
  area.addEventListener("input", () => { plane.draw(); changed(); });
  return {
    element: make("div", {}, plane.element,
      make("div", { class: "buttons" }, button("Random", random), button("Clear", () => put([]))),
      make("label", {}, `${column}: ${how}`, area)),
    value: () => (area.value.trim() ? area.value : undefined),
    put: (text) => { area.value = text; plane.draw(); changed(true); },
    begin: random,
    needs: () => `There is no answer yet: ${size === 2 ? "click into the plane to set points" : "type some numbers"}.`,
    answered: (text) => plane.link(text.split(" ").map(Number)),
  };
}

// What of the plane is shown: the unit square, or as much as the points need where they are not in it.
function frameOf(points) {
  if (points.flat().every((value) => value >= 0 && value <= 1)) return { left: 0, low: 0, spread: 1 };
  const [left, low] = [0, 1].map((axis) => Math.min(...points.map((point) => point[axis])));
  return { left, low, spread: Math.max(...points.map(([x, y]) => Math.max(x - left, y - low))) || 1 };
}

// A plane: a click sets a point, dragging or an arrow key moves it, Delete removes it; lines show the last answer.
function planeOf(read, write) {
  const element = make("svg", { viewBox: "0 0 400 400", class: "plane", role: "group",
    "aria-label": "Click to add a point, drag to move it; arrow keys move it too, Delete removes it" });
  let held = null, order = [], frame = frameOf([]);
  const placed = ([x, y]) =>
    [EDGE + SIDE * (x - frame.left) / frame.spread, 400 - EDGE - SIDE * (y - frame.low) / frame.spread];
  const within = (value, least) => Math.min(Math.max(value, least), least + frame.spread);
  const update = (points, focus) => { write(points); draw(focus); };
  // Put one point, a new one too, to a place of the plane.
  const move = (at, [x, y]) => {
    const points = read();
    points[at] = [within(x, frame.left), within(y, frame.low)];
    update(points, at);
  };

  function draw(focus) {
    const points = read();
    if (held === null) frame = frameOf(points);
    const spots = points.map(placed), way = order.every((at) => at < spots.length) ? order : [];
    const circle = ([cx, cy], at) => make("circle", { cx, cy, r: 12, tabindex: 0, role: "button", "data-at": at,
      "aria-label": `point ${at} at ${points[at]}` });
    element.replaceChildren(make("polygon", { points: way.map((at) => spots[at]).join(" ") }),
      ...spots.flatMap(([x, y], at) => [circle([x, y], at), make("text", { x, y: y + 4.5 }, String(at))]));
    if (focus !== undefined) element.querySelector(`[data-at="${focus}"]`)?.focus({ preventScroll: true });
  }

  // Where the mouse is.
  const under = ({ clientX, clientY }) => {
    const { x, y } = new DOMPoint(clientX, clientY).matrixTransform(element.getScreenCTM().inverse());
    return [frame.left + frame.spread * (x - EDGE) / SIDE, frame.low + frame.spread * (400 - EDGE - y) / SIDE];
  };
  element.addEventListener("pointerdown", (event) => {
    event.preventDefault();
    const { at } = event.target.dataset;
    held = at === undefined ? read().length : +at;
    if (at === undefined) move(held, under(event)); else event.target.focus();
    element.setPointerCapture(event.pointerId);
  });
  element.addEventListener("pointermove", (event) => { if (held !== null) move(held, under(event)); });
  for (const end of ["pointerup", "pointercancel"]) element.addEventListener(end, () => { held = null; });
  element.addEventListener("keydown", (event) => {
    const at = +event.target.dataset.at, points = read();
    const step = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[event.key];
    if (Number.isNaN(at) || (!step && event.key !== "Delete" && event.key !== "Backspace")) return;
    event.preventDefault();
    if (step) move(at, points[at].map((old, axis) => old + 0.02 * frame.spread * step[axis]));
    else update(points.filter((_, own) => own !== at), Math.max(at - 1, 0));
  });
  draw();
  const link = (found) => { order = found.every(Number.isInteger) ? found : []; draw(focusIn(element)); };
  return { element, draw, link };
}

const focusIn = (element) => element.contains(document.activeElement) ? document.activeElement.dataset.at : undefined;
