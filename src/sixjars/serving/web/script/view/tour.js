// Points in the order of the output: a closed line, or bars for numbers.
function tour({ tokens, text, points }) {
  const order = text.split(" ").filter((place) => place).map(Number), flat = points.length > 0 && points[0].length === 1;
  const viewBox = flat ? "0 0 500 280" : "0 0 500 500";
  const svg = make("svg", { class: "tour", viewBox, role: "group", "aria-label": "points" });
  svg.append(...(flat ? bars(points, order) : wayThrough(points, order)));
  const shown = flat ? "Bars: the numbers as they were output." : "Numbers: positions in the input.";
  const grey = points.some((_, at) => !order.includes(at)) ? " Grey: not in the output." : "";
  return [wordLine("output", tokens, "t"), svg, note(`${shown}${grey} Orange: the first of the output.`)];
}

// A point or number: the first of the output, another of it, or none.
function spot(at, order, name, ...inside) {
  const kind = order[0] === at ? "first" : order.includes(at) ? "" : "left-out";
  return make("g", { class: kind, "data-s": at, role: "button", tabindex: -1, "aria-label": name }, ...inside);
}

function wayThrough(points, order) {
  const { left, low, spread } = frameOf(points);
  const spots = points.map(([x, y]) => [30 + 440 * (x - left) / spread, 470 - 440 * (y - low) / spread]);
  const ways = order.flatMap((here, at) => arrow(spots[here], spots[order[(at + 1) % order.length]]));
  return [...ways, ...spots.map(([cx, cy], at) => spot(at, order, `point ${at}`,
    make("circle", { class: "shape", cx, cy, r: 13 }), make("text", { x: cx, y: cy + 4.5 }, String(at))))];
}

// From the edge of one circle to that of the next.
function arrow([x, y], [u, v]) {
  const far = Math.max(Math.hypot(u - x, v - y), 1e-6), [right, down] = [(u - x) / far, (v - y) / far];
  const edge = Math.min(14, far / 2), tip = [u - edge * right, v - edge * down];
  const back = [tip[0] - 12 * right, tip[1] - 12 * down], side = [4 * down, -4 * right];
  const head = [tip, [back[0] + side[0], back[1] + side[1]], [back[0] - side[0], back[1] - side[1]]];
  return [make("line", { class: "way", x1: x + edge * right, y1: y + edge * down, x2: back[0], y2: back[1] }),
    make("polygon", { class: "head", points: head.join(" ") })];
}

function bars(points, order) {
  const shown = [...order, ...points.keys()].filter((place, at, all) => all.indexOf(place) === at);
  const values = points.map(([value]) => value), low = Math.min(0, ...values), high = Math.max(0, ...values);
  const unit = 230 / (high - low || 1), wide = 480 / shown.length, ground = 245 + unit * low;
  return shown.flatMap((at, place) => {
    const height = unit * values[at], x = 10 + place * wide;
    const box = { x: x + 2, y: ground - Math.max(height, 0), width: wide - 4, height: Math.abs(height) };
    const text = make("text", { class: "below", x: x + wide / 2, y: 268 }, String(+values[at].toPrecision(3)));
    return [spot(at, order, `number ${values[at]}`, make("rect", { class: "shape", ...box })), text];
  });
}

VIEW.push({ fits: ({ points }) => points && points[0].length < 3, draws: tour });
