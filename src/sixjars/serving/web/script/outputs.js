// The best outputs with their probabilities, where there are several; for models without attention to draw.
function drawing(found) {
  const rows = found.map((one) => make("li", { dir: "auto" }, one.text, " ", make("small", {}, probability(one))));
  const list = make("ol", { class: "outputs", "aria-label": "Outputs, the best first" }, ...rows);
  return rows.length > 1 ? [list, order()] : [];
}
