// The page: loads the model beside it, and answers as one types.
const PARTS = ["inputs", "file", "status", "answer", "views", "took"];
const page = Object.fromEntries(PARTS.map((id) => [id, document.getElementById(id)]));
let model = null, controls = [], asked = 0, answered = 0; // how often somebody typed, and which of these was answered last

function say(text, isError = false) {
  page.status.textContent = text;
  page.status.classList.toggle("error", isError);
}

async function openModel(file) {
  try {
    model = new Model(await Weights.from(file), page.file.dataset.fingerprint);
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
    const given = controls.map((control) => control.value());
    try {
      await FIRST?.(given);
      found = await model.predict(given, wanted(), () => number !== asked);
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
  const shown = VIEW.length ? figure(found) : null, [best] = found;
  const text = best && (best.text || make("small", {}, "The output is empty."));
  page.answer.replaceChildren(...(best ? [text, " ", make("small", {}, probability(best))] : []));
  page.views.replaceChildren(...(shown ? [shown] : []));
  if (shown) livenView(shown);
}

const probability = ({ logProbability }) => `P = ${Math.exp(logProbability).toPrecision(3)}`;

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
    if (target.files.length) await openModel(target.files[0]);
  });
  if (location.protocol === "file:") {
    page.file.hidden = false;
    say("This page was opened as a file, and a browser does not let it read other files by itself.");
    return;
  }
  try {
    const reply = await fetch("model.bin");
    if (!reply.ok) throw new Error(`${reply.status} ${reply.statusText}`);
    await openModel(await reply.blob());
  } catch (error) {
    page.file.hidden = false;
    say(`model.bin cannot be loaded: ${error.message}`, true);
  }
}

load();
