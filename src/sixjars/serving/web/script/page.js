// The page: loads the model beside it, and answers as one types.
const PARTS = ["inputs", "file", "status", "answer", "views", "took"];
const page = Object.fromEntries(PARTS.map((id) => [id, document.getElementById(id)]));
let model = null, controls = [], asked = 0, answered = 0; // how often somebody typed, and which of these was answered last

function say(text, isError = false) {
  page.status.textContent = text;
  page.status.classList.toggle("error", isError);
}

function openModel(buffer) {
  try {
    model = new Model(buffer, page.file.dataset.fingerprint);
  } catch (error) {
    say(error.message, true);
    return;
  }
  page.file.hidden = true;
  controls = model.asked.map((field) => controlOf(field, answer));
  page.inputs.replaceChildren(...controls.map(({ element }) => element), ...(model.searches ? [choice()] : []));
  model.asked.forEach(({ name }, at) => {
    if (model.example[name] !== undefined) controls[at].put(model.example[name]); else controls[at].begin?.();
  });
  answer();
}

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

// As the page asks for it: of a beam the best three, of labels the best five.
function wanted() {
  const select = page.inputs.querySelector("select"), seed = page.inputs.querySelector("[name=seed]");
  if (!select) return { ...model.search, nbest: 5 };
  const { nbest, width } = model.search, several = Math.max(nbest, Math.min(3, width));
  const seeded = { ...model.search, kind: select.value, seed: Math.max(0, Math.trunc(seed.valueAsNumber || 0)) };
  return { ...seeded, nbest: select.value === "beam" ? several : nbest };
}

async function answer() {
  const number = ++asked, missing = controls.find((control) => control.value() === undefined);
  let found = [], told = missing ? missing.needs() : "", isError = false;
  const began = performance.now();
  if (!missing) {
    try {
      found = await model.predict(controls.map((control) => control.value()), wanted(), () => number !== asked);
    } catch (error) {
      [told, isError] = [`There is no answer: ${error.message}`, true];
    }
  }
  if (number !== asked) return;
  answered = number;
  if (missing && !told) return; // what is shown still holds
  show(found);
  say(found.length ? notes(found[0]) : told, isError);
  page.took.textContent = found.length ? `${(performance.now() - began).toFixed(0)} ms` : "";
  controls.forEach((control) => { if (found.length) control.answered?.(found[0].text); else if (isError) control.failed?.(); });
}

function show(found) {
  const shown = figure(found), [best] = found;
  const text = best && (best.text || make("small", {}, "The output is empty."));
  page.answer.replaceChildren(...(best ? [text, " ", make("small", {}, probability(best))] : []));
  page.views.replaceChildren(...(shown ? [shown] : []));
  if (shown) livenView(shown);
}

function notes({ unknownTokens, tokensRead, truncated, finished }) {
  const told = [];
  if (unknownTokens) told.push(`${unknownTokens} of ${tokensRead} tokens are unknown to the model.`);
  if (truncated) told.push("The input is longer than the model reads, so it is cut.");
  if (!finished) told.push("The output was cut at its greatest length.");
  return told.join(" ");
}

// A page that was opened as a file may not read the files beside it, so a person hands it the model.
async function load() {
  page.file.querySelector("input").addEventListener("change", async ({ target }) => {
    if (target.files.length) openModel(await target.files[0].arrayBuffer());
  });
  if (location.protocol === "file:") {
    page.file.hidden = false;
    say("This page was opened as a file, and a browser does not let it read other files by itself.");
    return;
  }
  try {
    const reply = await fetch("model.safetensors");
    if (!reply.ok) throw new Error(`${reply.status} ${reply.statusText}`);
    openModel(await reply.arrayBuffer());
  } catch (error) {
    page.file.hidden = false;
    say(`model.safetensors cannot be loaded: ${error.message}`, true);
  }
}

load();
