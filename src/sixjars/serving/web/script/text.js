// White space as Python has it: that of JavaScript is a little different.
const WHITE = "\\t-\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000";
const SPACES = new RegExp(`[${WHITE}]+`, "u");
const words = (text) => text.split(SPACES).filter((word) => word);
// only: input/text
const strip = (text) => text.replace(new RegExp(`^[${WHITE}]+|[${WHITE}]+$`, "gu"), "");
// end: input/text
// only: segments/lines, segments/turns
const LINE_END = /\r\n|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]/u;
const lines = (text) => text.split(LINE_END).map(strip).filter((line) => line);
// end: segments/lines, segments/turns
