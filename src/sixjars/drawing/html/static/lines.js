// Draws lines from the words of an input to those of an output, as wide as their weights.
function livenLines(element, items, weights) {
  // A curve from below one word to above another.
  function down(a, b, pair) {
    const x = a.x + a.width / 2 - pair.x, y = a.bottom - pair.y + 2;
    const u = b.x + b.width / 2 - pair.x, v = b.top - pair.y - 2, middle = (y + v) / 2;
    return `M${x},${y} C${x},${middle} ${u},${middle} ${u},${v}`;
  }

  // A curve from the right of one word to the left of another.
  function across(a, b, pair) {
    const x = a.right - pair.x + 4, y = a.y + a.height / 2 - pair.y;
    const u = b.x - pair.x - 4, v = b.y + b.height / 2 - pair.y, middle = (x + u) / 2;
    return `M${x},${y} C${middle},${y} ${middle},${v} ${u},${v}`;
  }

  function drawLines() {
    for (const svg of element.querySelectorAll(".pair svg")) {
      const pair = svg.parentElement.getBoundingClientRect(), paths = [];
      if (!pair.width) continue;
      const tall = svg.parentElement.classList.contains("tall");
      for (const to of items.t) {
        const step = +to.dataset.t, only = to.dataset.from === undefined ? null : to.dataset.from.split(",");
        for (const from of items.s) {
          const at = +from.dataset.s, weight = weights[step][at];
          if (weight < 0.05 || (only && !only.includes(String(at)))) continue;
          const a = from.getBoundingClientRect(), b = to.getBoundingClientRect();
          const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
          path.setAttribute("d", tall ? across(a, b, pair) : down(a, b, pair));
          path.setAttribute("stroke-width", 8 * weight);
          path.style.setProperty("--w", weight);
          path.dataset.lineT = step;
          path.dataset.lineS = at;
          if (to.classList.contains("copied")) path.classList.add("certain");
          paths.push(path);
        }
      }
      svg.replaceChildren(...paths);
    }
  }

  // Also when it is shown for the first time, as another hypothesis or inside of something that was closed.
  const watch = new ResizeObserver(drawLines);
  element.querySelectorAll(".pair").forEach((pair) => watch.observe(pair));
}
