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
  page.inputs.replaceChildren(...controls.map(({ element }) => element));
  // only: searches
  page.inputs.append(choice());
  // end: searches
  model.asked.forEach(({ name }, at) => {
    if (model.example[name] !== undefined) controls[at].put(model.example[name]);
    // only: input/points
    else controls[at].begin?.();
    // end: input/points
  });
  answer();
}

// As the page asks for it: of a beam the best three, of labels the best five.
function wanted() {
  // only: searches
  const select = page.inputs.querySelector("select"), seed = page.inputs.querySelector("[name=seed]");
  const { nbest, width } = model.search, several = Math.max(nbest, Math.min(3, width));
  const seeded = { ...model.search, kind: select.value, seed: Math.max(0, Math.trunc(seed.valueAsNumber || 0)) };
  return { ...seeded, nbest: select.value === "beam" ? several : nbest };
  // end: searches
  // only: decoder/label
  return { ...model.search, nbest: 5 };
  // end: decoder/label
}

async function answer() {
  const number = ++asked, missing = controls.find((control) => control.value() === undefined);
  let found = [], told = missing ? missing.needs() : "", isError = false;
  const began = performance.now();
  if (!missing) {
    const given = controls.map((control) => control.value());
    try {
      // only: input/image, input/video
      await FIRST(given);
      // end: input/image, input/video
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
  // only: input/points, segments/turns
  controls.forEach((control) => { if (found.length) control.answered?.(found[0].text); else if (isError) control.failed?.(); });
  // end: input/points, segments/turns
}

function show(found) {
  const [best] = found, text = best && (best.text || make("small", {}, "The output is empty."));
  page.answer.replaceChildren(...(best ? [text, " ", make("small", {}, probability(best))] : []));
  page.views.replaceChildren(...drawing(found));
}

// What several outputs are in the order of, as `sixjars inspect` says it.
const order = () => make("p", { class: "note" }, model.order[wanted().kind]);

const probability = ({ logProbability }) => `P = ${Math.exp(logProbability).toPrecision(3)}`;

function notes({ unknownTokens, tokensRead, truncated, finished }) {
  const told = [];
  // only: input/text
  if (unknownTokens) told.push(`${unknownTokens} of ${tokensRead} tokens are unknown to the model.`);
  if (truncated) told.push("The input is longer than the model reads, so it is cut.");
  // end: input/text
  // only: searches
  if (!finished) told.push("The output was cut at its greatest length.");
  // end: searches
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
