// Draws what an output attended to, as the views of `sixjars inspect` do; the script of those views lights it.
const WIDEST = 60, DEEP = 0.58, DEEPEST = 0.78;
const HINT = "Point at a word, or press an arrow key, to see what it attends to; a click keeps it.";

function shaded(element, share) {
  element.style.setProperty("--w", share.toFixed(3));
  element.classList.toggle("deep", share > DEEP);
  element.classList.toggle("deepest", share > DEEPEST);
  return element;
}

// One word; the first of an output can be reached with the key Tab, all others with arrows.
function word(text, side, at) {
  const index = side === "t" && at === 0 ? 0 : -1;
  return make("span", { class: "word", role: "button", tabindex: index, [`data-${side}`]: at }, text);
}

function wordLine(label, texts, side) {
  const flow = make("span", { class: "flow", dir: "auto" });
  texts.forEach((text, at) => flow.append(word(text, side, at), " "));
  const name = make("b", { class: "label" }, label);
  return make("div", { class: "words", role: "group", "aria-label": label }, name, flow);
}

const note = (text) => make("p", { class: "note" }, text);

function heatMap({ tokens, source, weights }) {
  if (source.length > WIDEST) return [wordLine("output", tokens, "t"), wordLine("input", source, "s")];
  const peak = Math.max(...weights.flat()) || 1;
  const head = source.map((name, at) => make("th", { scope: "col" }, word(name, "s", at)));
  const rows = tokens.map((token, step) => make("tr", {}, make("th", { scope: "row" }, word(token, "t", step)),
    ...weights[step].map((weight) => {
      const cell = make("td", { "data-t": step }, weight >= 0.05 ? weight.toFixed(2).replace(/^0/, "") : "");
      return shaded(cell, weight / peak);
    })));
  const table = make("table", { class: "heat" }, make("thead", {}, make("tr", {}, make("td"), ...head)),
    make("tbody", {}, ...rows));
  return [make("div", { class: "scroll" }, table),
    note(`Darkest: the largest weight, ${peak.toFixed(2)}. Rows: the output; columns: the input.`)];
}

// Sentences with their weights, and words shaded by √(weight of the sentence) times their share of it.
function documentView({ tokens, source, weights, segments }) {
  const mean = source.map((_, at) => weights.reduce((sum, row) => sum + row[at], 0) / weights.length);
  const sums = new Map();
  mean.forEach((weight, at) => sums.set(segments[at], (sums.get(segments[at]) || 0) + weight));
  const shares = mean.map((weight, at) => weight / Math.sqrt(sums.get(segments[at]) || 1));
  const peak = Math.max(...sums.values()) || 1, most = Math.max(...shares) || 1;
  const items = [...sums].map(([segment, sum]) => {
    const share = make("span", { class: "sentence" }, `${(100 * sum).toFixed(sum > 0 && sum < 0.0995 ? 1 : 0)}%`);
    const own = make("p", { dir: "auto" });
    source.forEach((name, at) => {
      if (segments[at] === segment) own.append(shaded(word(name, "s", at), shares[at] / most), " ");
    });
    return make("li", {}, shaded(share, sum / peak), own);
  });
  return [wordLine("output", tokens, "t"), make("ol", { class: "document" }, ...items),
    note("Red: the weight of a sentence. Blue: the weight of a word in it, times √(weight of the sentence).")];
}

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

// All weights as a table, which a screen reader reads, and the script that lights words too.
function table({ tokens, source, weights }) {
  const head = source.map((name) => make("th", { scope: "col" }, name));
  const rows = tokens.map((token, step) => make("tr", {}, make("th", { scope: "row" }, token),
    ...weights[step].map((weight) => make("td", {}, weight.toFixed(5)))));
  const caption = make("caption", { class: "note" },
    "A row for each word of the output, a column for each position of the input.");
  const whole = make("table", { class: "weights" }, caption, make("thead", {}, make("tr", {}, make("td"), ...head)),
    make("tbody", {}, ...rows));
  return make("details", {}, make("summary", {}, "All weights as a table"), make("div", { class: "scroll" }, whole));
}

function drawn(output) {
  const { points, segments, source, tokens } = output, long = source.length > WIDEST;
  if (points && points[0].length < 3) return tour(output);
  if (segments.length && (tokens.length === 1 || long)) return documentView(output);
  if (!points && long && tokens.length === 1) return documentView({ ...output, segments: source.map(() => 0) });
  return heatMap(output);
}

// A figure of all outputs that have attention weights, the best first: a tab for each where there are several.
function figure(predictions) {
  const outputs = predictions.filter(({ weights }) => weights.length && weights[0].length).map((one) =>
    (one.tokens.length > 1 && one.weights.length === 1 ? { ...one, tokens: [one.tokens.join(", ")] } : one));
  const view = make("figure", { class: "view" }), several = outputs.length > 1;
  const tabs = outputs.map((output, rank) => make("button", { type: "button", role: "tab", id: `tab-${rank}`,
    "aria-controls": `panel-${rank}`, "aria-selected": rank === 0, tabindex: rank ? -1 : 0 },
  `${rank + 1}. ${output.text} `, make("small", {}, probability(output))));
  const list = { class: "tabs", role: "tablist", "aria-label": "Outputs, the best first" };
  if (several) view.append(make("div", list, ...tabs));
  outputs.forEach((output, rank) => {
    const panel = make("div", { role: "tabpanel", id: `panel-${rank}`, "aria-label": "Attention" }, ...drawn(output),
      make("p", { class: "status", "aria-live": "polite" }, HINT), table(output));
    panel.hidden = rank > 0;
    view.append(panel);
  });
  return outputs.length ? view : null;
}

const probability = ({ logProbability }) => `P = ${Math.exp(logProbability).toPrecision(3)}`;
