// The page: loads the model beside it, and answers as one types.
const page = Object.fromEntries(["inputs", "file", "status", "answer", "views"].map((id) => [id, document.getElementById(id)]));
let model = null, asked = 0;

function say(text, isError = false) {
  page.status.textContent = text;
  page.status.classList.toggle("error", isError);
}

function openModel(buffer) {
  try {
    model = new Model(buffer);
  } catch (error) {
    say(error.message, true);
    return;
  }
  page.file.hidden = true;
  page.inputs.replaceChildren(...model.asked.map(box), ...(model.searches ? [choice()] : []));
  page.inputs.querySelector("textarea").focus({ preventScroll: true });
  answer();
}

function box({ name, hint, tokenizer }) {
  const label = model.inputs.length ? name : "how the text begins, or nothing";
  const area = make("textarea", { rows: 3, spellcheck: false, dir: "auto", "aria-describedby": "status" });
  area.addEventListener("input", answer);
  const about = tokenizer ? `${hint}; the model knows ${tokenizer.size - SPECIAL.length} tokens` : hint;
  return make("label", {}, make("b", {}, label), make("small", {}, ` ${about}`), area);
}

// How an output is searched for: the run's own way first.
function choice() {
  const { kind, width } = model.search;
  const names = { greedy: "greedy search", beam: `beam search, width ${width}`, sample: "sampling" };
  const select = make("select", { name: "search" }, ...Object.entries(names).map(([value, name]) => make("option", { value }, name)));
  select.value = kind;
  const seed = make("input", { name: "seed", type: "number", min: 0, step: 1, value: model.search.seed });
  const drawing = make("label", { class: "seed" }, " seed ", seed);
  const changed = () => { drawing.hidden = select.value !== "sample"; answer(); };
  select.addEventListener("change", changed);
  seed.addEventListener("input", answer);
  drawing.hidden = kind !== "sample";
  return make("p", {}, make("label", {}, "search ", select), drawing);
}

// As the page asks for it: of a beam the best three, of labels the best five.
function wanted() {
  const select = page.inputs.querySelector("select"), seed = page.inputs.querySelector("[name=seed]");
  if (!select) return { ...model.search, nbest: 5 };
  const nbest = select.value === "beam" ? Math.max(model.search.nbest, Math.min(3, model.search.width)) : model.search.nbest;
  return { ...model.search, kind: select.value, nbest, seed: Math.max(0, Math.trunc(seed.valueAsNumber || 0)) };
}

async function answer() {
  const number = ++asked, texts = Array.from(page.inputs.querySelectorAll("textarea"), (area) => area.value);
  if (model.inputs.length && texts.some((text) => !strip(text))) {
    page.answer.textContent = "";
    page.views.replaceChildren();
    say("Type something.");
    return;
  }
  try {
    const began = performance.now(), found = await model.predict(texts, wanted(), () => number !== asked);
    if (found && number === asked) show(found, performance.now() - began);
  } catch (error) {
    if (number === asked) say(error.message, true);
  }
}

function show(found, took) {
  const [best] = found, shown = figure(found);
  page.answer.replaceChildren(best.text, " ", make("small", {}, probability(best)));
  page.views.replaceChildren(...(shown ? [shown] : []));
  if (shown) livenView(shown);
  const notes = [];
  if (best.unknownTokens) notes.push(`${best.unknownTokens} of ${best.tokensRead} tokens are unknown to the model.`);
  if (best.truncated) notes.push("The input is longer than the model reads, so it is cut.");
  if (!best.finished) notes.push("The output was cut at its greatest length.");
  say(`${notes.join(" ")} ${took.toFixed(took < 10 ? 1 : 0)} ms`.trim());
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
