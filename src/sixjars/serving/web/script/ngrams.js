// Evidence of words and pairs of words, in the order of no words: their vectors, weighted and added up.
const EVIDENCE_SCALE = 20, PAIR_FACTORS = [1000003, 10007]; // products stay below 2^53, so the hash is exact

// At how many positions each number stands.
function occurrences(numbers) {
  const counts = new Map();
  for (const number of numbers) counts.set(number, (counts.get(number) ?? 0) + 1);
  return numbers.map((number) => counts.get(number));
}

class NgramVectors {
  constructor(weights, { buckets }, name) {
    this.buckets = buckets;
    this.words = { table: weights.tensor(`${name}.words.weight`), weights: weights.vector(`${name}.word_weights`) };
    this.pairs = { table: weights.tensor(`${name}.pairs.weight`), weights: weights.vector(`${name}.pair_weights`) };
  }

  // The number of a pair; 0 for none, where one of both is unknown or beyond the end.
  pair(word, next) {
    if (!(word > UNK && next > UNK)) return 0;
    return 1 + ((word * PAIR_FACTORS[0] + next * PAIR_FACTORS[1]) % this.buckets);
  }

  of(ids) {
    const pairs = ids.map((id, at) => this.pair(id, ids[at + 1]));
    const features = [...ids.map((id) => [this.words, id]), ...pairs.map((number) => [this.pairs, number])];
    const counts = [...occurrences(ids), ...occurrences(pairs)];
    const shares = features.map(([kind, number], at) => (kind.weights[number] * (1 + Math.log(counts[at]))) / counts[at]);
    const length = Math.sqrt(Math.max(shares.reduce((sum, share, at) => sum + counts[at] * share * share, 0), 1e-12));
    const vectors = features.map(([{ table: { values, columns } }, number]) =>
      values.subarray(number * columns, (number + 1) * columns));
    return weighted(shares.map((share) => (EVIDENCE_SCALE * share) / length), vectors, this.words.table.columns);
  }
}
