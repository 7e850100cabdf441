// Lights what an output word attended to, and the other way round. The weights are read from the table of each panel.
"use strict";

// only: inspect
document.querySelectorAll(".view").forEach(livenView);

// end: inspect
// One view: its panels, and the tabs that switch between them.
function livenView(view) {
  const tabs = [...view.querySelectorAll('[role="tab"]')];
  const panels = [...view.querySelectorAll('[role="tabpanel"]')];
  panels.forEach(livenPanel);
  const show = (at) => {
    tabs.forEach((tab, own) => {
      tab.setAttribute("aria-selected", String(own === at));
      tab.tabIndex = own === at ? 0 : -1;
    });
    panels.forEach((panel, own) => { panel.hidden = own !== at; });
  };
  tabs.forEach((tab, at) => {
    tab.addEventListener("click", () => show(at));
    tab.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!step) return;
      const next = (at + step + tabs.length) % tabs.length;
      show(next);
      tabs[next].focus();
      event.preventDefault();
    });
  });
}

// One panel: all that is shown of one output.
function livenPanel(element) {
  const rows = [...element.querySelectorAll(".weights tbody tr")];
  const weights = rows.map((row) => [...row.cells].slice(1).map((cell) => parseFloat(cell.textContent)));
  const names = {
    t: rows.map((row) => row.cells[0].textContent),
    s: [...element.querySelectorAll(".weights thead th")].map((cell) => cell.textContent),
  };
  const each = (side) => [...element.querySelectorAll(`[data-${side}]:not(td)`)];
  const items = { t: each("t"), s: each("s") };
  const all = [...items.t, ...items.s];
  const usual = new Map(all.map((item) => [item, item.style.getPropertyValue("--w")]));
  // only: view/document
  const sentences = [...element.querySelectorAll(".document li")].map((item) => {
    const share = item.querySelector(".sentence"), own = [...item.querySelectorAll("[data-s]")].map((e) => +e.dataset.s);
    return { share, own, text: share.textContent, usual: share.style.getPropertyValue("--w") };
  });
  // end: view/document
  const status = element.querySelector(".status");
  const said = status.textContent;
  let pinned = null;

  const other = (side) => (side === "t" ? "s" : "t");
  const line = (side, at) => (side === "t" ? weights[at] : weights.map((row) => row[at]));
  const place = (item) => (item.dataset.t !== undefined ? ["t", +item.dataset.t] : ["s", +item.dataset.s]);

  function shade(item, weight) {
    item.style.setProperty("--w", weight);
    item.classList.toggle("deep", +weight > 0.58);
    item.classList.toggle("deepest", +weight > 0.78);
  }

  function clear() {
    all.forEach((item) => { shade(item, usual.get(item) || 0); item.classList.remove("on"); });
    // only: view/document
    sentences.forEach(({ share, text, usual: before }) => { shade(share, before); share.textContent = text; });
    // end: view/document
    // only: inspect
    element.querySelectorAll("path.on").forEach((path) => path.classList.remove("on"));
    // end: inspect
    // only: inspect, view/image
    element.querySelectorAll(".chosen").forEach((part) => part.classList.remove("chosen"));
    // end: inspect, view/image
    delete element.dataset.lit;
    status.textContent = said;
  }

  // One output word, or one position of the input.
  function light(side, at) {
    clear();
    const found = line(side, at), most = Math.max(...found) || 1;
    items[side].forEach((item) => { if (place(item)[1] === at) { shade(item, 0); item.classList.add("on"); } });
    items[other(side)].forEach((item) => shade(item, (found[place(item)[1]] / most).toFixed(3)));
    // only: inspect
    element.querySelectorAll(`path[data-line-${side}="${at}"]`).forEach((path) => path.classList.add("on"));
    element.querySelectorAll(".pair").forEach((pair) => pair.classList.add("chosen"));
    // end: inspect
    // only: view/image
    if (side === "t") uncover(at);
    // end: view/image
    // only: view/document
    if (side === "t") weigh(found);
    // end: view/document
    element.dataset.lit = `${side}${at}`;
    const best = found.map((weight, own) => [weight, own]).sort((one, two) => two[0] - one[0]).slice(0, 4);
    const told = best.filter(([weight]) => weight >= 0.01);
    const words = told.map(([weight, own]) => `${names[other(side)][own]} (${weight.toFixed(2)})`).join(", ");
    const verb = side === "t" ? "attends to" : "is attended to by";
    status.textContent = words ? `${names[side][at]} ${verb} ${words}` : `${names[side][at]}: all weights are small`;
  }
  // only: view/image

  // Of an image: the light of that word on the large one.
  function uncover(at) {
    const tile = element.querySelector(`.tile[data-t="${at}"] .light`), large = element.querySelector(".large");
    if (!tile || !large) return;
    large.querySelector(".light").style.backgroundImage = tile.style.backgroundImage;
    large.classList.add("chosen");
  }
  // end: view/image
  // only: view/document

  // Of a document: the weight of each sentence is that of its words together.
  function weigh(found) {
    const sums = sentences.map(({ own }) => own.reduce((sum, at) => sum + found[at], 0)), most = Math.max(...sums) || 1;
    sentences.forEach(({ share }, at) => {
      shade(share, (sums[at] / most).toFixed(3));
      share.textContent = `${(100 * sums[at]).toFixed(sums[at] < 0.0995 ? 1 : 0)}%`;
    });
  }
  // end: view/document

  function relight() {
    if (pinned) light(...pinned); else clear();
  }

  const pointed = (event) => event.target.closest("[data-t], [data-s]");
  element.addEventListener("pointerover", (event) => {
    const item = pointed(event);
    if (item) light(...place(item)); else relight();
  });
  element.addEventListener("pointerleave", relight);
  element.addEventListener("focusin", (event) => { const item = pointed(event); if (item) light(...place(item)); });
  element.addEventListener("focusout", relight);
  element.addEventListener("click", (event) => {
    const item = pointed(event);
    if (!item) return;
    const [side, at] = place(item);
    pinned = pinned && pinned[0] === side && pinned[1] === at ? null : [side, at];
    light(side, at);
  });
  element.addEventListener("keydown", (event) => {
    if (event.key === "Escape") { pinned = null; clear(); return; }
    const item = pointed(event);
    if (!item) return;
    const next = neighbour(item, event.key);
    if (!next) return;
    all.forEach((one) => { one.tabIndex = -1; });
    next.tabIndex = 0;
    next.focus();
    event.preventDefault();
  });

  // Left and right: the next word. Up and down: the other side, where the weight is largest.
  function neighbour(item, key) {
    const [side, at] = place(item), own = items[side], here = own.indexOf(item);
    const to = { ArrowRight: here + 1, ArrowLeft: here - 1, Home: 0, End: own.length - 1 }[key];
    if (to !== undefined) return own[to];
    if (key !== "ArrowUp" && key !== "ArrowDown") return undefined;
    const found = line(side, at), best = found.indexOf(Math.max(...found));
    return items[other(side)].find((one) => place(one)[1] === best);
  }
  // only: inspect

  if (element.querySelector(".pair")) livenLines(element, items, weights);
  // end: inspect
}
