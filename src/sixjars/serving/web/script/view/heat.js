// A heat map; of a long input, words that are shaded while one points at the output.
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

VIEW.push({ fits: () => true, draws: heatMap });
