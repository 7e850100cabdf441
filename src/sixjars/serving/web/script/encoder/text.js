ENCODER.text = WordsEncoder;
