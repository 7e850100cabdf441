// What each kind of field is asked with. A control has an element, `value()` (nothing while it is empty), and calls
// `changed` when there is something new; some have `answered(text)`.

function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (value !== false) made.setAttribute(key, value === true ? "" : value);
  }
  made.append(...children);
  return made;
}

function controlOf(field, changed) {
  if (field.file) return fileControl(field, changed);
  if (field.settings.segments === "turns") return talkControl(field, changed);
  if (field.settings.dimensions !== undefined) return pointsControl(field, changed);
  return textControl(field, changed);
}

// A text, or a document of several lines.
function textControl(field, changed) {
  const long = (field.settings.segments || "none") !== "none" || field.settings.max_length > 400;
  const area = element("textarea", { rows: long ? 9 : 2, dir: "auto", name: field.name, spellcheck: "false", oninput: () => changed() });
  const hint = { lines: " (a line for each sentence)", sentences: " (a document)" }[field.settings.segments] || "";
  return {
    element: element("label", {}, field.name + hint, area),
    value: () => area.value.trim() ? area.value : undefined,
  };
}

// An image, a video or an array: dropped, chosen or pasted.
function fileControl(field, changed) {
  let file;
  const kind = ["image", "video"].includes(field.kind) ? field.kind : "";
  const chosen = element("input", { type: "file", name: field.name, accept: kind ? `${kind}/*` : ".npy" });
  const shown = element("div");
  const zone = element("label", { class: "drop" }, `Drop the ${field.name} here, paste it, or choose a file`, chosen, shown);
  const take = (found) => {
    if (!found) return;
    file = found;
    if (shown.firstChild && shown.firstChild.src) URL.revokeObjectURL(shown.firstChild.src);
    const url = kind ? URL.createObjectURL(file) : "";
    const view = kind === "image" ? element("img", { src: url, alt: file.name })
      : kind ? element("video", { src: url, controls: true, muted: true, "aria-label": file.name }) : file.name;
    shown.replaceChildren(view);
    changed(true);
  };
  chosen.addEventListener("change", () => take(chosen.files[0]));
  zone.addEventListener("dragover", (event) => { event.preventDefault(); zone.classList.add("over"); });
  zone.addEventListener("dragleave", () => zone.classList.remove("over"));
  zone.addEventListener("drop", (event) => {
    event.preventDefault();
    zone.classList.remove("over");
    take(event.dataTransfer.files[0]);
  });
  return { element: zone, value: () => file, paste: (found) => take(found) };
}

// A conversation: what was said stays, and goes with what is said next.
function talkControl(field, changed) {
  let turns = [], waits = false;
  const list = element("ol", { class: "talk", role: "log", "aria-label": "Conversation" });
  const next = element("textarea", { rows: 2, dir: "auto", name: field.name });
  const show = () => list.replaceChildren(...turns.map(([own, text]) =>
    element("li", own ? { class: "own" } : {}, element("span", { dir: "auto" }, text))));
  const say = () => {
    if (!next.value.trim() || waits) return;
    turns.push([false, next.value.trim().replace(/\s+/g, " ")]);
    next.value = "";
    waits = true;
    show();
    changed(true);
  };
  const reset = (count) => { turns = turns.slice(0, count); waits = false; show(); next.focus(); };
  next.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) { event.preventDefault(); say(); }
  });
  return {
    element: element("div", {}, list,
      element("label", {}, "Say something", next),
      element("div", { class: "buttons" },
        element("button", { type: "button", onclick: () => reset(0) }, "New conversation"),
        element("button", { type: "button", onclick: () => reset(Math.max(turns.length - 2, 0)) }, "Take back"))),
    value: () => (waits ? turns.filter(([, text]) => text).map(([own, text]) => `${own ? "<" : ">"} ${text}`) : undefined),
    submit: say,
    answered: (text) => { turns.push([true, text]); waits = false; show(); },
    failed: () => { const [, text] = turns.pop() || [false, ""]; waits = false; next.value = text; show(); },
  };
}

// Points in a plane, to click and drag; or numbers. The text is what counts, so all of it can be done without a mouse.
function pointsControl(field, changed) {
  const size = field.settings.dimensions, plane = size === 2;
  const area = element("textarea", { rows: 2, name: field.name, spellcheck: "false" });
  const parsed = () => area.value.trim().split(/\s+/).filter(Boolean).map((point) => point.split(",").map(Number));
  const right = (points) => points.every((point) => point.length === size && point.every(Number.isFinite));
  const svg = plane ? svgElement("svg", { viewBox: "0 0 400 400", class: "plane", role: "group",
    "aria-label": "Click to add a point, drag to move it; arrow keys move it too, Delete removes it" }) : null;
  const write = (points, focus) => {
    area.value = points.map((point) => point.map((number) => +number.toFixed(3)).join(",")).join(" ");
    draw(focus);
    changed();
  };
  const place = (event) => {
    const box = svg.getBoundingClientRect(), share = (part) => Math.min(Math.max(part, 0), 1);
    return [share((event.clientX - box.x) / box.width), share(1 - (event.clientY - box.y) / box.height)];
  };
  const moved = (at, point) => write(parsed().map((old, own) => (own === at ? point : old)), at);
  const removed = (at) => write(parsed().filter((_, own) => own !== at), Math.max(at - 1, 0));

  function draw(focus) {
    const points = parsed();
    if (!svg || !right(points)) return;
    svg.replaceChildren(...points.flatMap(([x, y], at) => {
      const spot = { cx: 400 * x, cy: 400 * (1 - y), r: 12, tabindex: 0, role: "button", "aria-label": `point ${at} at ${x}, ${y}` };
      const dot = svgElement("circle", { ...spot, "data-at": at });
      const text = svgElement("text", { x: 400 * x, y: 400 * (1 - y) + 4.5 });
      text.textContent = at;
      return [dot, text];
    }));
    if (focus !== undefined) svg.querySelector(`[data-at="${focus}"]`)?.focus({ preventScroll: true });
  }

  let held = null;
  svg?.addEventListener("pointerdown", (event) => {
    event.preventDefault();
    const at = event.target.dataset.at;
    if (at === undefined) write([...parsed(), place(event)], parsed().length);
    held = at === undefined ? parsed().length - 1 : +at;
    svg.setPointerCapture(event.pointerId);
  });
  svg?.addEventListener("pointermove", (event) => { if (held !== null) moved(held, place(event)); });
  for (const end of ["pointerup", "pointercancel"]) svg?.addEventListener(end, () => { held = null; });
  svg?.addEventListener("keydown", (event) => {
    const at = +event.target.dataset.at;
    const step = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[event.key];
    if (Number.isNaN(at) || (!step && event.key !== "Delete" && event.key !== "Backspace")) return;
    event.preventDefault();
    if (!step) { removed(at); return; }
    moved(at, parsed()[at].map((old, axis) => Math.min(Math.max(old + 0.02 * step[axis], 0), 1)));
  });
  area.addEventListener("input", () => { draw(); changed(); });
  const random = () => write(Array.from({ length: 8 }, () => Array.from({ length: size }, () => Math.random())));
  return {
    element: element("div", {}, ...(svg ? [svg] : []),
      element("div", { class: "buttons" },
        element("button", { type: "button", onclick: random }, "Random"),
        element("button", { type: "button", onclick: () => write([]) }, "Clear")),
      element("label", {}, `${field.name}, ${size === 1 ? "numbers with spaces between them" : "as x,y with spaces between them"}`, area)),
    value: () => { const points = parsed(); return points.length > 1 && right(points) ? points : undefined; },
  };
}

function svgElement(name, attributes) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}
