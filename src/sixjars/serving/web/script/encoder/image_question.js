// The cells of an image, and a summary h_T = [q_T, v̂] of the question and the image, or of the question alone.
ENCODER.image_question = class {
  constructor(weights, settings) {
    this.image = new ENCODER.image(weights, settings.image, "encoder.image");
    this.question = new WordsEncoder(weights, settings.question, "encoder.question");
    this.both = settings.summary === "both";
  }

  encode(image, question) {
    const seen = this.image.encode(image), { summary } = this.question.encode(question);
    return { ...seen, summary: this.both ? concat([summary, seen.summary]) : summary };
  }
};
