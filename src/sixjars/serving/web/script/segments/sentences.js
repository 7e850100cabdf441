// Prose is cut into sentences by the same rule as in Python (sixjars_runtime.text.sentences says what it is).
const listed = (text) => new Set(text.split(" "));
const NAME_FOLLOWS = listed(
  "Mr Mrs Ms Dr Drs Prof Rev Fr Br Gen Col Maj Capt Cpt Cmdr Lt Sgt Cpl Adm Sen Sens Rep Reps Gov Govs Pres Hon " +
  "Messrs Mme Mlle Mgr Msgr St Sta Ste Mt Ft Sra Srta Dra Supt Insp Det Atty Amb Sec vs v e.g i.e eg ie cf viz ca " +
  "approx bzw z.B d.h resp incl excl");
const NUMBER_FOLLOWS = listed(
  "No Nos no nos Nr nr p pp Fig Figs fig Vol vol Ch ch Eq eq Op op Art art Chap");
const MAY_END = listed(
  "Inc Corp Co Cos Ltd Bros Jr Sr Esq etc al Jan Feb Mar Apr Jun Jul Aug Sep Sept Oct Nov Dec Mon Tue Tues Wed Thu " +
  "Thur Thurs Fri Ave Blvd Rd Dept Univ Assn Ala Ariz Ark Calif Colo Conn Del Fla Ga Ill Ind Kan Ky La Mass Md Mich " +
  "Minn Mo Miss Mont Neb Nev Okla Ore Pa Penn Tenn Tex Va Vt Wash Wis Wyo est dept mln bln usw");
const STARTERS = listed(
  "the a an this that these those he she it they we you i his her its their our my your in on at but and or so if " +
  "when while as for with by from after before since although though however then there here what who how why where " +
  "which also not no yes one some many most all another both each every other meanwhile moreover nevertheless now " +
  "still yet according during under over despite because until once even only such");
const ENDINGS = listed(
  "com org net edu gov io js pdf doc txt csv xml html zip exe jpg png gif mp3");
const FULL = "।॥。！？｡", STRONG = "?!‽؟۔", MARKS = `[.…${STRONG}${FULL}]`, CLOSING = "[)\\]}”»›」』）］】〉》]";
const W = "\\p{L}\\p{N}_", LETTER = "[\\p{L}\\p{Nl}\\p{No}]"; // as in \\w, and that without digits
const SPACE = `[${WHITE.replace("\\t-\\r", "\\t\\v\\f\\r")}]`;
const BREAKS = "\\n\\r\\v\\f\\x1c-\\x1e\\x85\\u2028\\u2029";
const regex = (pattern, flags = "yu") => new RegExp(pattern, flags);
const BREAK = regex(`[${BREAKS}]+|(?:<br[${WHITE}]{0,9}/?>[${WHITE}]*)+`, "giu");
const SIGN = regex(`${MARKS}+(?:${SPACE}+${MARKS}+)*`, "gu");
const AFTER_QUOTED = regex(`(?:${CLOSING}|['’"])*(?:${SPACE}+(?:${CLOSING}|''|"(?=[${WHITE},;]|$)))*`);
const AFTER = regex(`(?:${CLOSING}|['’]|"(?![${W}]))*(?:${SPACE}+(?:${CLOSING}|''))*`);
const AHEAD = regex(`(?<gap>[${WHITE}]*)(?<signs>(?:[^${W}${WHITE}]{1,8}[${WHITE}]?){0,3})(?<word>[${W}]{0,16})`);
const PAUSE = regex(`[${WHITE}]*(?:[,;:](?=[${WHITE}]|$)|[，、；：]|${MARKS})`);
const ITEM = regex(`^[${WHITE}]*[(\\[]?(?:\\p{Nd}{1,3}|${LETTER})[${WHITE}]?$`, "u");
const DOTTED = regex(`^(?:${LETTER}{1,2}\\.)+${LETTER}{1,2}$`, "u"), ROMAN = /^(?:[IVXLC]{2,}|[VX])$/;
const DIGIT = /^[\p{Nd}²³¹⁰⁴-⁹₀-₉①-⑨⑴-⑼⒈-⒐]/u;
const isUpper = (text) => /\p{Uppercase}/u.test(text) && !/\p{Lowercase}|\p{Lt}/u.test(text);
const isLower = (text) => /\p{Lowercase}/u.test(text) && !/\p{Uppercase}|\p{Lt}/u.test(text);

function matchedAt(pattern, text, at) {
  pattern.lastIndex = at;
  return pattern.exec(text);
}

SEGMENTS.sentences = (text) => {
  const cased = /\p{Uppercase}/u.test(text), found = [];
  for (const [line, tail] of brokenLines(text)) {
    const pieces = piecesOf(line, cased).map(strip).filter((piece) => piece);
    if (pieces.length) pieces[pieces.length - 1] += tail;
    found.push(...pieces);
  }
  return found;
};

// The lines of a text, each with the tags that end it; tags before any word stay at the start of a line.
function brokenLines(text) {
  const found = [];
  let begin = 0, lead = "";
  for (const broken of text.matchAll(BREAK)) {
    const line = text.slice(begin, broken.index), tags = words(broken[0]).join(" ");
    begin = broken.index + broken[0].length;
    if (strip(line)) {
      found.push([lead + line, tags]);
      lead = "";
    } else if (tags) lead += `${tags} `;
  }
  return [...found, [lead + text.slice(begin), ""]];
}

function piecesOf(line, cased) {
  const found = [];
  let begin = 0, quotes = 0, counted = 0;
  for (const mark of line.matchAll(SIGN)) {
    const end = mark.index + mark[0].length;
    quotes += line.slice(counted, end).split('"').length - 1;
    counted = end;
    const closed = end + matchedAt(quotes % 2 ? AFTER_QUOTED : AFTER, line, end)[0].length;
    if (ends(line, begin, mark, closed, cased)) {
      found.push(line.slice(begin, closed));
      begin = closed;
    }
  }
  return [...found, line.slice(begin)];
}

// Whether a mark ends the sentence that begins at `begin`; with what closes it, it would end at `end`.
function ends(line, begin, mark, end, cased) {
  if (matchedAt(PAUSE, line, end)) return false;
  if (Array.from(mark[0]).some((sign) => FULL.includes(sign))) return true;
  const ahead = matchedAt(AHEAD, line, end), { gap, word } = ahead.groups, after = line.slice(end + ahead[0].length);
  const [first = ""] = word;
  if (cased && isLower(first)) return false;
  if (!gap && !glued(line, mark, word, after.slice(0, 1))) return false;
  return mark[0] !== "." || !abbreviated(line, begin, mark.index, word, after.startsWith("."), cased);
}

// Whether a word directly after a mark begins a sentence.
function glued(line, mark, word, after) {
  const before = line.slice(Math.max(mark.index - 40, 0), mark.index), last = Array.from(before).at(-1) || "";
  const [first = "", second = ""] = word;
  if (!word || !before || !strip(last)) return false;
  if (/\p{L}/u.test(first) && first.toLowerCase() === first.toUpperCase()) { // a script without capital letters
    return Array.from(mark[0]).some((sign) => STRONG.includes(sign));
  }
  const token = words(before).at(-1);
  const address = token.includes("@") || token.includes("://") || token.startsWith("www");
  if (address || ENDINGS.has(word.toLowerCase()) || !isUpper(first)) return false;
  const alone = (word === "I" || word === "A") && after !== ".";
  const short = (after === "&" || after === "-") && !isUpper(last);
  return alone || short || isLower(second) || (second !== "" && !isUpper(last));
}

// Whether the full stop at `at` belongs to the word before it.
function abbreviated(line, begin, at, following, dotFollows, cased) {
  if (at - begin < 8 && ITEM.test(line.slice(begin, at))) return true;
  const near = line.slice(Math.max(begin, at - 24), at), split = new RegExp(`[${WHITE}(\\["'“‘/\\-]`, "u");
  const last = near.replace(new RegExp(`[${WHITE}]+$`, "u"), "").split(split).at(-1);
  const followedByInitial = Array.from(following).length === 1 && dotFollows;
  if (last === "I" || last === "i") return followedByInitial;
  const lower = last.toLowerCase(), capital = last.slice(0, 1).toUpperCase() + lower.slice(1);
  const spellings = cased && !isUpper(last) ? [last] : [last, lower, capital];
  const among = (set) => spellings.some((one) => set.has(one));
  if (among(NAME_FOLLOWS)) return true;
  if (among(NUMBER_FOLLOWS) && (DIGIT.test(following) || ROMAN.test(following))) return true;
  const initial = Array.from(last).length === 1 && (isUpper(last) || (isLower(last) && !cased));
  if (initial || among(MAY_END) || DOTTED.test(last)) {
    return followedByInitial || !cased || !STARTERS.has(following.toLowerCase());
  }
  return false;
}
