"""Text as data: tokens, sentences, segments, word vectors, points written as text. Loads no torch."""
