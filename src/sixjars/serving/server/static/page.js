// The live page: asks the server while something is typed, drawn or dropped, and shows what comes back.

const PATIENCE = 250; // milliseconds without a key before it asks
const find = (id) => document.getElementById(id);
const page = { models: [], model: null, controls: {}, timer: 0, asking: null };

async function call(path, body) {
  const headers = {}, token = sessionStorage.getItem("token");
  if (token) headers.Authorization = `Bearer ${token}`;
  if (typeof body === "string") headers["Content-Type"] = "application/json";
  const signal = page.asking ? page.asking.signal : undefined;
  const answer = await heard(fetch(path, { method: body === undefined ? "GET" : "POST", headers, body, signal }));
  if (answer.status === 401) askForToken(Boolean(token));
  if (!answer.ok) throw new Error((await answer.json().catch(() => ({}))).detail || `the server answered ${answer.status}.`);
  return answer;
}

// What a server sends; where it has ended, or cannot be reached, a sentence in place of the browser's own words.
async function heard(coming) {
  try {
    return await coming;
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Error("The server does not answer; it may have ended. Start it again, or look at your connection.");
  }
}

function askForToken(wrong) {
  find("token").hidden = false;
  find("form").hidden = true;
  find("refused").textContent = wrong ? "This token is wrong." : "";
  find("token").querySelector("input").focus();
}

// Takes away what was answered, for screen readers too.
function clearAnswer() {
  find("written").hidden = true;
  find("spoken").textContent = "";
  find("answer").replaceChildren();
}

function tell(sentence, wrong) {
  find("error").hidden = !wrong;
  find("error").textContent = wrong ? sentence : "";
  find("status").textContent = wrong ? "" : sentence;
}

// The settings of search that differ from the run's own.
function settings() {
  const form = find("form"), search = {}, { searches, multi_label: several } = page.model;
  const nbest = +form.elements.nbest.value || 1, kind = searches ? form.elements.kind.value : "";
  if (kind) search.kind = kind;
  if (kind === "sample") search.seed = +form.elements.seed.value || 0;
  if (kind === "beam") search.width = Math.max(nbest, page.model.search.width);
  if (kind === "greedy" && nbest > 1) search.kind = "beam";
  return { search, ...(nbest > 1 && !several ? { nbest } : {}) };
}

// The body of a request.
function request() {
  const values = {}, files = [];
  for (const [name, control] of Object.entries(page.controls)) {
    const value = control.value();
    if (value instanceof File) files.push(value);
    values[name] = value instanceof File ? value.name : value;
  }
  const message = { model: page.model.name, inputs: [values], view: true, ...settings() };
  if (!files.length) return [message, JSON.stringify(message)];
  const form = new FormData();
  form.append("request", JSON.stringify(message));
  files.forEach((file) => form.append("files", file, file.name));
  return [message, form];
}

function later(now) {
  clearTimeout(page.timer);
  page.timer = setTimeout(ask, now === true ? 0 : PATIENCE);
}

async function ask() {
  const missing = Object.values(page.controls).find((control) => control.value() === undefined);
  if (missing) {
    if (missing.needs()) {
      page.asking?.abort();
      clearAnswer();
      tell(missing.needs());
    }
    return;
  }
  const [message, body] = request(), kind = message.search.kind || page.model.search.kind;
  const streams = page.model.searches && kind !== "beam" && !message.nbest && page.model.search.nbest === 1;
  page.asking?.abort();
  const own = page.asking = new AbortController(), began = performance.now();
  document.body.dataset.state = "asking";
  try {
    const row = streams ? await streamed(body) : (await (await call("/v1/predict", body)).json()).predictions[0];
    if (own.signal.aborted) return;
    if (row.error) throw new Error(row.error.replace(/^input 1: /, ""));
    show(row);
    tell([...row.notes, `answered in ${Math.round(performance.now() - began)} ms`].join(" "));
  } catch (error) {
    if (error.name === "AbortError" || own.signal.aborted) return;
    Object.values(page.controls).forEach((control) => control.failed?.());
    clearAnswer();
    tell(error.message, true);
  }
  find("written").hidden = true;
  document.body.dataset.state = "done";
}

// Tokens as they are written; the last event has the whole.
async function streamed(body) {
  const reader = (await call("/v1/stream", body)).body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await heard(reader.read());
    if (done) throw new Error("the server ended before its answer did.");
    rest += value;
    const events = rest.split("\n\n");
    rest = events.pop();
    for (const event of events) {
      const [name, data] = event.split("\n");
      const values = JSON.parse(data.slice("data: ".length));
      if (name === "event: end") return values;
      if (name === "event: error") throw new Error(values.detail);
      find("written").hidden = false;
      find("written").textContent = values.text;
    }
  }
}

function show(row) {
  find("answer").innerHTML = row.html; // made by the server, which escapes all text
  find("answer").querySelectorAll(".view").forEach(livenView);
  find("spoken").textContent = `Answer: ${row.outputs[0].text}`; // all of the view would be too much to hear
  Object.values(page.controls).forEach((control) => control.answered?.(row.outputs[0].text));
}

function choose(name) {
  page.asking?.abort();
  page.model = page.models.find((model) => model.name === name) || page.models[0];
  location.hash = encodeURIComponent(page.model.name);
  find("model").value = page.model.name;
  find("task").textContent = page.model.task.replaceAll("_", " ");
  find("title").textContent = page.model.title;
  document.title = page.model.name;
  const begins = page.model.inputs[0].name === page.model.output.name; // nothing is read
  page.controls = Object.fromEntries(page.model.inputs.map((field) =>
    [field.name, field.file ? fileControl(field, later) : controlOf({ ...field, begins }, later)]));
  find("fields").replaceChildren(...Object.values(page.controls).map((control) => control.element));
  clearAnswer();
  find("ask").hidden = Object.values(page.controls).some((control) => control.submit); // it has a button of its own
  find("kinds").hidden = !page.model.searches;
  find("search").hidden = page.model.multi_label;
  find("form").elements.nbest.value = 1;
  find("form").elements.kind.value = "";
  find("seed").hidden = true;
  tell("");
  Object.values(page.controls).forEach((control) => control.begin?.());
  later();
}

async function start() {
  try {
    page.models = (await (await call("/v1/models")).json()).models;
  } catch (error) {
    if (find("token").hidden) { find("form").hidden = false; tell(error.message, true); }
    return;
  }
  find("token").hidden = true;
  find("form").hidden = false;
  find("choice").hidden = page.models.length < 2;
  find("model").replaceChildren(...page.models.map(({ name, task }) => make("option", { value: name }, name === task ? name : `${name} (${task})`)));
  choose(named(location.hash.slice(1)));
}

// The model that an address names; one that cannot be decoded is taken as it stands.
function named(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

find("model").addEventListener("change", (event) => choose(event.target.value));
find("search").addEventListener("change", () => {
  find("seed").hidden = find("form").elements.kind.value !== "sample";
  later();
});
find("form").addEventListener("submit", (event) => {
  event.preventDefault();
  const talks = Object.values(page.controls).filter((control) => control.submit);
  if (talks.length) talks.forEach((control) => control.submit()); else later(true);
});
find("form").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) find("form").requestSubmit();
});
find("token").addEventListener("submit", (event) => {
  event.preventDefault();
  find("refused").textContent = ""; // so that the same sentence is heard again
  sessionStorage.setItem("token", find("token").querySelector("input").value);
  start();
});
document.addEventListener("paste", (event) => {
  const [file] = event.clipboardData.files;
  if (file) Object.values(page.controls).find((control) => control.paste)?.paste(file);
});
start();
