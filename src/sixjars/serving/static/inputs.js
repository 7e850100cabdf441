// What each kind of field is asked with, on the page of a server and on a static one.
// only: input/points, input/image, input/video, segments/turns
// A control has
//   element, value() (the text or file of the input; nothing while there is none), put(text) (gives it an example),
//   needs() (what to do while there is no input; nothing where what is shown still holds),
// calls `changed` when there is something new, and may have submit(), answered(text) and failed().
// end: input/points, input/image, input/video, segments/turns
const MEANT = { // by segments; `begins` where a model reads nothing
  none: "a text",
  // only: segments/lines
  lines: "a document, each sentence on a line of its own",
  // end: segments/lines
  // only: segments/sentences
  sentences: "a document",
  // end: segments/sentences
  // only: segments/turns
  turns: "what you say; Enter sends it",
  // end: segments/turns
  // only: encoder/none
  begins: "how the text begins, or nothing",
  // end: encoder/none
};
// only: input/points
const SVG = "http://www.w3.org/2000/svg", SHAPES = ["svg", "g", "circle", "rect", "text", "line", "polygon"];
// end: input/points

// An element with attributes and listeners; what is inside is inserted as text, never as HTML.
function make(tag, attributes = {}, ...inside) {
  let made = document.createElement(tag);
  // only: input/points
  if (SHAPES.includes(tag)) made = document.createElementNS(SVG, tag);
  // end: input/points
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") made.addEventListener(name.slice("on".length), value);
    else made.setAttribute(name, value);
  }
  made.append(...inside);
  return made;
}

// only: input/points, segments/turns
const button = (name, onclick) => make("button", { type: "button", onclick }, name);

// end: input/points, segments/turns
function controlOf(field, changed) {
  // only: input/image, input/video
  if (field.settings.pixels !== undefined) return fileControl({ ...field, kind: field.settings.kind }, changed);
  // end: input/image, input/video
  // only: segments/turns
  if (field.settings.segments === "turns") return talkControl(field, changed);
  // end: segments/turns
  // only: input/points
  if (field.settings.dimensions !== undefined) return pointsControl(field, changed);
  // end: input/points
  return textControl(field, changed);
}

// A text, or a document of several lines.
function textControl({ name, column, settings, begins }, changed) {
  const { segments = "none", max_length: most } = settings, meant = begins ? MEANT.begins : MEANT[segments];
  const rows = segments !== "none" || most > 400 ? 7 : 2;
  const area = make("textarea", { name, placeholder: meant, rows, dir: "auto", spellcheck: false, oninput: () => changed() });
  return {
    element: make("label", {}, column, area),
    value: () => (begins || area.value.trim() ? area.value : undefined),
    put: (text) => { area.value = text; changed(true); },
    needs: () => `There is no answer yet: type ${meant}.`,
  };
}
