// Turns of a conversation, each with a mark of who speaks; the last one is by the other speaker.
SEGMENTS.turns = (text) => {
  const found = lines(text);
  if (found.every((line) => line.startsWith("> ") || line.startsWith("< "))) return found;
  return found.map((line, at) => `${(found.length - 1 - at) % 2 ? "<" : ">"} ${line}`);
};
