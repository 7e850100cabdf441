// Sentences with their weights, and words shaded by √(weight of the sentence) times their share of it.
function documentView({ tokens, source, weights, segments }) {
  const mean = source.map((_, at) => weights.reduce((sum, row) => sum + row[at], 0) / weights.length);
  const sums = new Map();
  mean.forEach((weight, at) => sums.set(segments[at], (sums.get(segments[at]) || 0) + weight));
  const shares = mean.map((weight, at) => weight / Math.sqrt(sums.get(segments[at]) || 1));
  const peak = Math.max(...sums.values()) || 1, most = Math.max(...shares) || 1;
  const items = [...sums].map(([segment, sum]) => {
    const share = make("span", { class: "sentence" }, `${(100 * sum).toFixed(sum > 0 && sum < 0.0995 ? 1 : 0)}%`);
    const own = make("p", { dir: "auto" });
    source.forEach((name, at) => {
      if (segments[at] === segment) own.append(shaded(word(name, "s", at), shares[at] / most), " ");
    });
    return make("li", {}, shaded(share, sum / peak), own);
  });
  return [wordLine("output", tokens, "t"), make("ol", { class: "document" }, ...items),
    note("Red: the weight of a sentence. Blue: the weight of a word in it, times √(weight of the sentence).")];
}

// Also a long text with a label, as one sentence.
VIEW.push({
  fits: ({ segments, source, tokens, points }) => !points
    && (segments.length ? tokens.length === 1 || source.length > WIDEST : source.length > WIDEST && tokens.length === 1),
  draws: (output) => documentView(output.segments.length ? output : { ...output, segments: output.source.map(() => 0) }),
});
