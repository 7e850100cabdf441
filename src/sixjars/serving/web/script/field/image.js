// An image: a file that the browser decodes.
FIELD.image = class {
  read = new WeakMap(); // what was made of a file, so that another question about it is answered sooner

  constructor({ name, settings }) {
    this.name = name;
    this.settings = settings;
  }

  async encode(file) {
    if (!this.read.has(file)) this.read.set(file, await this.opened(file));
    return this.read.get(file);
  }

  async opened(file) {
    const { pixels, fit, max_pixels: most } = this.settings;
    let bitmap;
    try {
      bitmap = await createImageBitmap(file, { colorSpaceConversion: "none" });
    } catch {
      throw new Error(`the ${this.name} is not an image, or of a kind that this browser cannot decode; PNG and JPEG can be read.`);
    }
    checkSize(this.name, bitmap.width, bitmap.height, most);
    const image = planesOf(bitmap, bitmap.width, bitmap.height), box = placed(image.height, image.width, fit);
    const picture = { photo: photo(image, 480), aspect: image.width / image.height, box };
    return { frames: [framed(image, pixels, fit)], shown: [], picture };
  }
};
