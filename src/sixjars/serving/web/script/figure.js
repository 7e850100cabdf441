// Draws what an output attended to, as the views of `sixjars inspect` do; the script of those views lights it. The files
// of the views that this model has fill VIEW, each with what it `draws` and whether it `fits` an output.
const HINT = "Point at a word, or press an arrow key, to see what it attends to; a click keeps it.";

// only: view/heat, view/document, view/frames
const DEEP = 0.58, DEEPEST = 0.78;

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

// end: view/heat, view/document, view/frames
// only: view/heat, view/document
const WIDEST = 60; // words of a heat map

function wordLine(label, texts, side) {
  const flow = make("span", { class: "flow", dir: "auto" });
  texts.forEach((text, at) => flow.append(word(text, side, at), " "));
  const name = make("b", { class: "label" }, label);
  return make("div", { class: "words", role: "group", "aria-label": label }, name, flow);
}

// end: view/heat, view/document
const note = (text) => make("p", { class: "note" }, text);

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

const drawn = (output) => VIEW.find(({ fits }) => fits(output)).draws(output);

// A figure of all outputs that have attention weights, the best first: a tab for each where there are several.
function figure(predictions) {
  const outputs = predictions.filter(({ weights }) => weights.length && weights[0].length).map((one) => ({
    ...one, source: VIEW.find(({ fits }) => fits(one))?.names?.(one) ?? one.source, // what a person reads at each position
    tokens: one.weights.length === 1 ? [one.tokens.join(", ")] : one.tokens,
  }));
  const view = make("figure", { class: "view" }), several = outputs.length > 1;
  const tabs = outputs.map((output, rank) => make("button", { type: "button", role: "tab", id: `tab-${rank}`,
    "aria-controls": `panel-${rank}`, "aria-selected": rank === 0, tabindex: rank ? -1 : 0 },
  `${rank + 1}. ${output.text} `, make("small", {}, probability(output))));
  const list = { class: "tabs", role: "tablist", "aria-label": "Outputs, the best first" };
  if (several) view.append(make("div", list, ...tabs), order());
  outputs.forEach((output, rank) => {
    const panel = make("div", { role: "tabpanel", id: `panel-${rank}`, "aria-label": "Attention" }, ...drawn(output),
      make("p", { class: "status", "aria-live": "polite" }, HINT), table(output));
    panel.hidden = rank > 0;
    view.append(panel);
  });
  return outputs.length ? view : null;
}

// What is shown below the best output.
function drawing(found) {
  const shown = figure(found);
  if (shown) livenView(shown);
  return shown ? [shown] : [];
}
