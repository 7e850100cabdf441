// A conversation: what was said stays, and goes with what is said next.
function talkControl({ name }, changed) {
  let turns = [], waits = false, over = false; // whether an answer is awaited; whether the last turn has its answer
  const list = make("ol", { class: "talk", role: "log", "aria-label": "Conversation" });
  const next = make("textarea", { name, rows: 2, dir: "auto", placeholder: MEANT.turns });
  const show = () => list.replaceChildren(...turns.map(([mark, text]) =>
    make("li", { class: mark === "<" ? "own" : "theirs" }, make("span", { dir: "auto" }, text))));
  const ask = (said) => { turns = said; waits = true; show(); changed(true); };
  const say = () => {
    if (!next.value.trim() || waits) return;
    const text = next.value.trim().replace(/\s+/g, " ");
    next.value = "";
    ask([...turns, [">", text]]);
  };
  const reset = (count) => { turns = turns.slice(0, count); waits = over = false; show(); next.focus(); changed(true); };
  next.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) { event.preventDefault(); say(); }
  });
  return {
    element: make("div", {}, list, make("label", {}, "Say something", next),
      make("div", { class: "buttons" }, button("Send", say), button("Take back", () => reset(Math.max(turns.length - 2, 0))),
        button("New conversation", () => reset(0)))),
    value: () => (waits ? turns.filter(([, text]) => text).map((turn) => turn.join(" ")).join("\n") : undefined),
    put: (text) => ask(turnsOf(text)),
    needs: () => (over ? "" : "There is no answer yet: say something."),
    submit: say,
    answered: (text) => { if (waits) turns.push(["<", text]); waits = false; over = true; show(); },
    failed: () => { if (waits) [, next.value] = turns.pop(); waits = over = false; show(); },
  };
}

// The turns of a text with their marks; where they have none, two speak in turn, and the last is the other's.
function turnsOf(text) {
  const lines = text.split("\n").filter((line) => line.trim());
  if (lines.every((line) => /^[<>] /.test(line))) return lines.map((line) => [line[0], line.slice(2)]);
  return lines.map((line, at) => [(lines.length - at) % 2 ? ">" : "<", line]);
}
