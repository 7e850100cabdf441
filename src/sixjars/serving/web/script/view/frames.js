// The frames on a time line, and below each a bar for every word of the output.
function framesView({ tokens, weights, source, strip }) {
  const peak = Math.max(...weights.flat()) || 1;
  const head = source.map((name, at) => {
    const own = { class: "word", role: "button", tabindex: -1, "data-s": at, "aria-label": name };
    return make("th", { scope: "col" }, make("div", own, make("img", { src: strip[at], alt: name })), make("span", {}, String(at + 1)));
  });
  const rows = tokens.map((token, step) => make("tr", {}, make("th", { scope: "row" }, word(token, "t", step)),
    ...weights[step].map((weight) => shaded(make("td", { "data-t": step }, weight >= 0.1 ? weight.toFixed(2) : ""), weight / peak))));
  const table = make("table", { class: "strip" }, make("thead", {}, make("tr", {}, make("td"), ...head)), make("tbody", {}, ...rows));
  return [make("div", { class: "scroll" }, table), note(`Height: the attention weight, from 0 to ${peak.toFixed(2)}.`)];
}

VIEW.push({ fits: ({ strip }) => strip, draws: framesView, names: ({ source }) => source.map((name) => `frame ${name}`) });
