"""Text as data: tokens, sentences, segments, word vectors, points as text. Loads no torch."""
