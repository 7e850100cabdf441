// How well a query s and a vector h fit: additive Vᵀ tanh(U s + W h), dot sᵀ h, or general sᵀ W h.
class Score {
  constructor(weights, name) {
    const part = (own) => (weights.has(`${name}.${own}.weight`) ? new Linear(weights, `${name}.${own}`) : null);
    this.query = part("query");
    this.key = part("key");
    this.score = part("score");
  }

  keys(memory) {
    return this.key ? memory.map((vector) => this.key.of(vector)) : memory;
  }

  of(query, keys) {
    if (!this.score) return keys.map((key) => dot(query, key));
    const asked = this.query.of(query), own = this.score.matrix.values;
    return keys.map((key) => {
      let sum = 0;
      for (let at = 0; at < own.length; at++) sum += own[at] * Math.tanh(asked[at] + key[at]);
      return sum;
    });
  }
}
