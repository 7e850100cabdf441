// How an output is searched for: the run's own way first.
function choice() {
  const { kind, width } = model.search;
  const names = { greedy: "greedy search", beam: `beam search, width ${width}`, sample: "sampling" };
  const options = Object.entries(names).map(([value, name]) => make("option", { value }, name));
  const select = make("select", { name: "search" }, ...options);
  select.value = kind;
  const seed = make("input", { name: "seed", type: "number", min: 0, step: 1, value: model.search.seed });
  const drawing = make("label", { class: "seed" }, " seed ", seed);
  const changed = () => { drawing.hidden = select.value !== "sample"; answer(); };
  select.addEventListener("change", changed);
  seed.addEventListener("input", answer);
  drawing.hidden = kind !== "sample";
  return make("p", { id: "search" }, make("label", {}, "search ", select), drawing);
}
