// Draws `nbest` outputs. Random numbers are hashes of seed, step and token, the same as in Python.
const wrap = (number) => BigInt.asUintN(64, number);

// splitmix64 (Steele, Lea & Flood 2014).
function hashed(number) {
  let mixed = wrap(number + 0x9E3779B97F4A7C15n);
  mixed = wrap((mixed ^ (mixed >> 30n)) * 0xBF58476D1CE4E5B9n);
  mixed = wrap((mixed ^ (mixed >> 27n)) * 0x94D049BB133111EBn);
  return mixed ^ (mixed >> 31n);
}

// The scores of the `top_k` best tokens, and of these the fewest whose probabilities sum to `top_p`; others -Infinity.
function likely(scores, { temperature, top_k: most, top_p: share }) {
  const warm = scores.map((score) => score / temperature);
  if (!most && share >= 1) return warm;
  const order = [...warm.keys()].sort((one, two) => warm[two] - warm[one]).slice(0, most || warm.length);
  const shares = softmax(order.map((token) => warm[token])), found = new Float32Array(warm.length).fill(-Infinity);
  let before = 0;
  order.forEach((token, rank) => {
    if (before < share) found[token] = warm[token];
    before += shares[rank];
  });
  return found;
}

// The Gumbel-max trick: argmax_v (s_v - log E_v) with E_v = -log U_v.
function draw(scores, seed) {
  let best = 0, most = -Infinity;
  scores.forEach((score, token) => {
    if (score === -Infinity) return;
    const uniform = (Number(hashed(seed ^ BigInt(token)) >> 12n) + 0.5) * 2 ** -52;
    const value = score - Math.log(-Math.log(uniform));
    if (value > most) [best, most] = [token, value];
  });
  return best;
}

SEARCH.sample = async (problem) => {
  const source = hashed(hashed(wrap(BigInt(problem.settings.seed)))), found = []; // that of the first input
  for (let row = 0; row < problem.settings.nbest; row++) {
    const own = hashed(source ^ BigInt(row));
    const one = await rowByRow(problem, (scores, made) =>
      draw(likely(scores, problem.settings), hashed(wrap(own + BigInt(made)))));
    if (!one) return null;
    found.push(one);
  }
  return found.sort((one, two) => two.logProbability - one.logProbability);
};
