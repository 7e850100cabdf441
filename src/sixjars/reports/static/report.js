// The map of summary vectors: shows the text of a point, and its nearest neighbours. All of it is read from the table.
for (const map of document.querySelectorAll(".map")) {
  const dots = [...map.querySelectorAll(".dot")], tip = map.querySelector(".tip"), plot = map.querySelector(".plot");
  const rows = [...map.querySelectorAll(".points tbody tr")], picked = map.querySelector(".picked");
  const names = [...map.querySelectorAll(".points thead th")].map((cell) => cell.textContent);
  const cell = (at, column) => rows[at].cells[column].textContent;
  const text = (at) => cell(at, 1) || cell(at, 3);
  const places = dots.map((dot) => [+dot.getAttribute("cx"), +dot.getAttribute("cy")]);
  const rings = plot.querySelector(".rings");

  const make = (tag, content, name) => {
    const made = document.createElement(tag);
    made.textContent = content;
    if (name) made.className = name;
    return made;
  };
  const ring = (at, name) => {
    const made = document.createElementNS("http://www.w3.org/2000/svg", "circle");
    made.setAttribute("class", `ring ${name}`);
    [["cx", places[at][0]], ["cy", places[at][1]], ["r", 8]].forEach(([key, value]) => made.setAttribute(key, value));
    return made;
  };
  const near = (at) => [...cell(at, 6).matchAll(/(\d+) \((-?[\d.]+)\)/g)].map((found) => [found[1] - 1, found[2]]);

  // The text of a point beside it.
  function point(at) {
    const box = dots[at].getBoundingClientRect(), around = plot.getBoundingClientRect();
    tip.textContent = cell(at, 1) ? `${cell(at, 1)} → ${cell(at, 2)}` : cell(at, 3);
    tip.hidden = false;
    const x = box.x + box.width / 2 - around.x, right = x > around.width / 2;
    tip.style.left = right ? "auto" : `${x + 12}px`;
    tip.style.right = right ? `${around.width - x + 12}px` : "auto";
    const y = box.y + box.height / 2 - around.y, below = y < around.height / 2;
    tip.style.top = below ? `${y + 8}px` : "auto";
    tip.style.bottom = below ? "auto" : `${around.height - y + 8}px`;
    dots[at].setAttribute("aria-label", tip.textContent);
  }

  // Keeps a point, with its nearest neighbours as buttons.
  function keep(at) {
    const list = document.createElement("ol"), others = near(at);
    rings.replaceChildren(...others.map(([other]) => ring(other, "near")), ring(at, "here"));
    for (const [other, alike] of others) {
      const item = document.createElement("li"), button = make("button", text(other));
      button.type = "button";
      button.addEventListener("click", () => { reach(other); keep(other); });
      item.append(button, make("span", ` similarity ${alike}`, "note"));
      list.append(item);
    }
    const facts = [[2, "output"], [3, "reference"], [4, names[4]], [5, "length"]]
      .filter(([column]) => cell(at, column)).map(([column, name]) => `${name}: ${cell(at, column)}`);
    picked.replaceChildren(make("b", text(at)), make("p", facts.join(" · "), "note"), make("p", "Nearest neighbours:"), list);
  }

  function reach(at) {
    dots.forEach((dot) => { dot.tabIndex = -1; });
    dots[at].tabIndex = 0;
  }

  // The nearest point in a direction.
  function towards(at, key) {
    const way = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[key];
    if (!way) return -1;
    let best = -1, least = Infinity;
    places.forEach(([x, y], other) => {
      const across = x - places[at][0], down = y - places[at][1];
      const along = across * way[0] + down * way[1], beside = Math.abs(across * way[1]) + Math.abs(down * way[0]);
      if (other !== at && along > 0.05 && along + 2 * beside < least) { least = along + 2 * beside; best = other; }
    });
    return best;
  }

  // What is shown where the mouse is at no point: the one that a key went to.
  function rest() {
    const own = plot.querySelector(".dot:focus-visible");
    if (own) point(+own.dataset.at); else tip.hidden = true;
  }

  const dotOf = (event) => event.target.closest(".dot");
  map.addEventListener("pointerover", (event) => {
    const dot = dotOf(event);
    if (dot) point(+dot.dataset.at); else rest();
  });
  map.addEventListener("focusin", (event) => { const dot = dotOf(event); if (dot) point(+dot.dataset.at); });
  map.addEventListener("focusout", () => { tip.hidden = true; });
  map.addEventListener("pointerleave", rest);
  plot.addEventListener("click", (event) => {
    const dot = dotOf(event);
    if (dot) { reach(+dot.dataset.at); keep(+dot.dataset.at); }
  });
  plot.addEventListener("keydown", (event) => {
    const dot = dotOf(event);
    if (!dot) return;
    const at = +dot.dataset.at, next = towards(at, event.key);
    if (event.key === "Enter" || event.key === " ") keep(at);
    else if (next >= 0) { reach(next); dots[next].focus(); }
    else return;
    event.preventDefault();
  });
  map.querySelector(".by").addEventListener("change", (event) => { map.dataset.by = event.target.value; });
  const find = map.querySelector(".find");
  const matches = () => {
    const wanted = find.value.trim().toLowerCase();
    return rows.map((row, at) => !wanted || [1, 2, 3].some((column) => cell(at, column).toLowerCase().includes(wanted)));
  };
  find.addEventListener("input", () => {
    const found = matches();
    dots.forEach((dot, at) => dot.classList.toggle("dim", !found[at]));
  });
  find.addEventListener("keydown", (event) => {
    const at = matches().indexOf(true);
    if (event.key === "Enter" && at >= 0) { reach(at); keep(at); event.preventDefault(); }
  });
}
