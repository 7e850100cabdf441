// A video: some of its frames, which the browser decodes. Which ones is counted in an MP4 file; of others the frames are
// taken to be 1/25 of a second apart.
const USUAL = 25, PATIENCE = 10_000, UNCHANGED = 250, BOXES = ["moov", "trak", "mdia", "minf", "stbl"];

FIELD.video = class {
  read = new WeakMap();

  constructor({ name, settings }) {
    this.name = name;
    this.settings = settings;
  }

  async encode(file) {
    if (!this.read.has(file)) this.read.set(file, await this.opened(file));
    return this.read.get(file);
  }

  async opened(file) {
    const { pixels, fit, max_pixels: most } = this.settings, video = document.createElement("video"), address = URL.createObjectURL(file);
    Object.assign(video, { muted: true, preload: "auto", playsInline: true });
    try {
      await arrived(video, "loadeddata", () => { video.src = address; });
      checkSize(this.name, video.videoWidth, video.videoHeight, most);
      const times = this.times(await middles(file) ?? regular(video.duration)), frames = [];
      for (const time of times) {
        const drawn = presented(video);
        await arrived(video, "seeked", () => { video.currentTime = time; });
        await drawn;
        frames.push(planesOf(video, video.videoWidth, video.videoHeight));
      }
      const squares = frames.map((frame) => framed(frame, pixels, fit));
      return { frames: squares, shown: squares.map((_, at) => String(at + 1)), strip: frames.map((frame) => photo(frame, 120)) };
    } catch (error) {
      if (error instanceof Error) throw error;
      throw new Error(`the ${this.name} is not a video, or of a kind that this browser cannot decode; MP4 and WebM can be read.`);
    } finally {
      URL.revokeObjectURL(address);
    }
  }

  // When each frame is shown that is taken: evenly from the first to the last, or so many in a second.
  times(all) {
    const { frames, rate } = this.settings, last = all.length - 1;
    if (rate !== null) {
      const found = Array.from({ length: frames }, (_, at) => 1e-3 + at / rate);
      return found.filter((time, at) => at === 0 || time < all.at(-1) + (all.at(-1) - (all.at(-2) ?? 0)) / 2);
    }
    const steps = Math.min(frames, all.length) - 1;
    if (steps < 1) return [all[Math.floor(last / 2)]];
    return Array.from({ length: steps + 1 }, (_, at) => all[Math.floor((2 * at * last + steps) / (2 * steps))]);
  }
};

// Waits until something has happened that `begin` begins; a video that cannot be decoded, or hangs, is none.
function arrived(video, event, begin) {
  return new Promise((done, failed) => {
    const refuse = () => failed(null);
    video.addEventListener(event, done, { once: true });
    video.addEventListener("error", refuse, { once: true });
    setTimeout(refuse, PATIENCE);
    begin();
  });
}

// Waits until a frame can be drawn: a browser says that it has sought before. Where the frame stays the same, none comes.
function presented(video) {
  return new Promise((done) => {
    video.requestVideoFrameCallback?.(done);
    setTimeout(done, UNCHANGED);
  });
}

const regular = (seconds) => Array.from({ length: Math.max(1, Math.round(seconds * USUAL)) }, (_, at) => (at + 0.5) / USUAL);

// The middle of each frame of an MP4 file, in seconds; null of other files.
async function middles(file) {
  for (let at = 0; at + 16 <= file.size;) {
    const head = new DataView(await file.slice(at, at + 16).arrayBuffer()), short = head.getUint32(0);
    const size = short === 1 ? Number(head.getBigUint64(8)) : short || file.size - at;
    if (size < 8) return null;
    if (letters(head, 4) === "moov") return framesIn(new DataView(await file.slice(at, at + size).arrayBuffer()));
    at += size;
  }
  return null;
}

const letters = (view, at) => String.fromCharCode(...[0, 1, 2, 3].map((own) => view.getUint8(at + own)));

// The tables of the first track that holds a video: how long each of its frames is shown.
function framesIn(movie) {
  const tracks = [];
  const walk = (from, to) => {
    for (let at = from; at + 8 <= to; at += Math.max(8, movie.getUint32(at))) {
      const kind = letters(movie, at + 4);
      if (kind === "trak") tracks.push({});
      if (BOXES.includes(kind)) walk(at + 8, Math.min(to, at + movie.getUint32(at))); else if (tracks.length) tracks.at(-1)[kind] = at + 8;
    }
  };
  walk(0, movie.byteLength);
  const track = tracks.find(({ hdlr, stts, mdhd }) => hdlr && stts && mdhd && letters(movie, hdlr + 8) === "vide");
  if (!track) return null;
  const unit = movie.getUint32(track.mdhd + (movie.getUint8(track.mdhd) === 1 ? 20 : 12)), found = [];
  for (let entry = 0, now = 0; entry < movie.getUint32(track.stts + 4); entry++) {
    const [count, long] = [8, 12].map((at) => movie.getUint32(track.stts + 8 * entry + at));
    for (let own = 0; own < count; own++, now += long) found.push((now + long / 2) / unit);
  }
  return found.length ? found : null;
}
