// At every step the `width` best beginnings; the `nbest` best hypotheses, best first.
SEARCH.beam = async (problem) => {
  const { longest } = problem, { width, nbest, length_penalty: power } = problem.settings;
  const byScore = (one, two) => two.score - one.score;
  let rows = [problem.begin], last = rows, ended = [];
  for (let made = 0; made < longest && rows.length; made++) {
    const grown = [];
    for (const row of rows) {
      if (await problem.interrupted()) return null;
      const { scores, weights, state } = problem.step(row), own = withWeights(row, weights);
      for (const token of bestTokens(scores, 2 * width)) {
        const logProbability = Math.fround(row.logProbability + scores[token]);
        grown.push({ token, before: row.tokens, weights: own, logProbability, state });
      }
    }
    // Twice the width are compared, so that `width` go on even if as many stop; a stop counts among the best `width`.
    const best = grown.sort((one, two) => two.logProbability - one.logProbability).slice(0, 2 * width);
    const stops = best.slice(0, width).filter(({ token }) => token === STOP);
    ended = [...ended, ...stops.map((one) => problem.hypothesis({ ...one, tokens: one.before }, true))]
      .sort(byScore).slice(0, nbest);
    const going = best.filter(({ token }) => token !== STOP).slice(0, width)
      .map(({ token, before, ...one }) => ({ ...one, tokens: [...before, token] }));
    if (going.length) last = going;
    // What could not become one of the best any more is dropped: log P only falls, and `longest` divides it by most.
    const bar = ended.length < nbest ? -Infinity : ended.at(-1).score;
    rows = going.filter(({ logProbability }) => logProbability / longest ** power > bar);
  }
  const whole = last[0].tokens.length === longest || !ended.length;
  const unfinished = whole ? last.map((row) => problem.hypothesis(row, false)).sort(byScore) : [];
  return [...ended, ...unfinished].slice(0, nbest);
};

// The tokens with the highest scores, the best first; of equal ones the lower number.
function bestTokens(scores, count) {
  const found = [];
  scores.forEach((score, token) => {
    if (score === -Infinity || (found.length === count && score <= scores[found.at(-1)])) return;
    let place = found.length;
    while (place > 0 && scores[found[place - 1]] < score) place--;
    found.splice(place, 0, token);
    if (found.length > count) found.pop();
  });
  return found;
}
