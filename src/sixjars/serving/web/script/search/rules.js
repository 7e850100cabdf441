// What every kind of search shares: rules for what may not be output next, and the score that hypotheses are ranked by.
// A row is a beginning: its tokens, its attention weights, its log probability and the state after it.

class Problem {
  constructor(decoder, settings, { state, prepared, longest = settings.max_length, prefix }, stopped) {
    Object.assign(this, { decoder, prepared, longest, settings, prefix, stopped });
    this.begin = { tokens: [], weights: [], logProbability: 0, state };
    const { banned, unknown } = decoder.special;
    this.never = unknown !== null && settings.unknown === "ban" ? [...banned, unknown] : banned;
    this.paused = performance.now();
  }

  // One step of a row: the log probabilities of what may come next, the weights, and the state.
  step({ tokens, state }) {
    const found = this.decoder.step(tokens.length ? tokens.at(-1) : GO, state, this.prepared);
    return { ...found, scores: this.ruled(found.scores, tokens) };
  }

  ruled(scores, tokens) {
    const made = tokens.length;
    // only: encoder/none
    if (made < this.prefix.length) return scores.map((score, at) => (at === this.prefix[made] ? score : -Infinity));
    // end: encoder/none
    for (const token of this.never) scores[token] = -Infinity;
    const length = this.settings.no_repeat_ngram;
    for (let at = 0; length && at + length <= made; at++) {
      const seen = tokens.slice(at, at + length - 1).every((token, own) => token === tokens[made - length + 1 + own]);
      if (seen) scores[tokens[at + length - 1]] = -Infinity;
    }
    if (made < this.settings.min_length && scores.some((score, at) => at !== STOP && score > -Infinity)) {
      scores[STOP] = -Infinity; // unless nothing else may follow
    }
    return scores;
  }

  // log P / length^α
  score(logProbability, length, weights) {
    if (length === 0) return 0;
    let score = logProbability / length ** this.settings.length_penalty;
    // only: attends
    const penalty = this.settings.coverage_penalty; // β Σ_j log min(Σ_t α_tj, 1)
    if (penalty && weights.length) {
      const covered = weights[0].map((_, at) => weights.reduce((sum, row) => sum + row[at], 0));
      score += penalty * covered.reduce((sum, all) => sum + Math.log(Math.min(Math.max(all, 2 ** -126), 1)), 0);
    }
    // end: attends
    return score;
  }

  hypothesis({ tokens, weights, logProbability }, finished) {
    const score = this.score(logProbability, tokens.length + (finished ? 1 : 0), weights);
    return { tokens, weights, logProbability, score, finished };
  }

  // Lets the page answer now and then; true where nobody waits for this search any more.
  async interrupted() {
    if (performance.now() - this.paused < 12) return false;
    await new Promise((done) => { setTimeout(done); });
    this.paused = performance.now();
    return this.stopped();
  }
}

const withWeights = (row, weights) => (weights ? [...row.weights, weights] : row.weights);

// One hypothesis; `choose` picks a token from the log probabilities of a step. Null where it was interrupted.
async function rowByRow(problem, choose) {
  let row = problem.begin;
  while (row.tokens.length < problem.longest) {
    if (await problem.interrupted()) return null;
    const { scores, weights, state } = problem.step(row), token = choose(scores, row.tokens.length);
    if (scores[token] === -Infinity) break;
    const logProbability = Math.fround(row.logProbability + scores[token]);
    const after = { tokens: row.tokens, weights: withWeights(row, weights), logProbability, state };
    if (token === STOP) return problem.hypothesis(after, true);
    row = { ...after, tokens: [...row.tokens, token] };
  }
  return problem.hypothesis(row, false);
}
