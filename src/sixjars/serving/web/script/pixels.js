// Files become squares of bytes as in Python: upright, in colour, all of one size. Whatever the browser decodes, images and
// frames of videos, is made smaller here as Pillow does it, in the same whole numbers; a browser's own way is another one.
const GREY = 128, GAP = 3, FINE = 2 ** 22;

// Red, green and blue of something that can be drawn, each (H, W); what can be seen through lies on white.
function planesOf(drawable, width, height) {
  const canvas = Object.assign(document.createElement("canvas"), { width, height });
  const pen = canvas.getContext("2d", { willReadFrequently: true });
  pen.fillStyle = "white";
  pen.fillRect(0, 0, width, height);
  pen.drawImage(drawable, 0, 0, width, height);
  const { data } = pen.getImageData(0, 0, width, height);
  const planes = [0, 1, 2].map((colour) => {
    const plane = new Uint8Array(width * height);
    for (let at = 0; at < plane.length; at++) plane[at] = data[4 * at + colour];
    return plane;
  });
  return { canvas, planes, width, height };
}

// What the square covers of an image: left, top, right and bottom, as shares of its width and height.
function placed(height, width, fit) {
  if (fit === "stretch") return [0, 0, 1, 1];
  const side = fit === "crop" ? Math.min(height, width) : Math.max(height, width);
  const left = (1 - side / width) / 2, top = (1 - side / height) / 2;
  return [left, top, 1 - left, 1 - top];
}

// An image as a square, (3, size, size): its middle, with bars at the sides, or stretched.
function framed(image, size, fit) {
  const { width, height } = image, square = new Uint8Array(3 * size * size).fill(GREY);
  let [top, left, box] = [0, 0, [0, 0, width, height]];
  if (fit === "pad") {
    const scale = size / Math.max(width, height), bar = (side) => Math.min(even((size - side) / 2), Math.floor((size - 1) / 2));
    [top, left] = [bar(height * scale), bar(width * scale)];
  } else box = placed(height, width, fit).map((share, at) => share * (at % 2 ? height : width));
  const [wide, high] = [size - 2 * left, size - 2 * top];
  resized(image, [wide, high], box).forEach((plane, colour) => {
    for (let row = 0; row < high; row++) {
      const from = plane.subarray(row * wide, (row + 1) * wide);
      square.set(from, (colour * size + top + row) * size + left);
    }
  });
  return square;
}

// As Python rounds: halves to the even number.
const even = (value) => (value % 1 === 0.5 ? 2 * Math.round(value / 2) : Math.round(value));

// A part of an image at another size: blocks are averaged where it is much larger, then cubic interpolation.
function resized(image, size, box) {
  const factors = size.map((side, axis) => Math.trunc((box[axis + 2] - box[axis]) / side / GAP) || 1);
  let [{ planes, width, height }, part] = [image, box];
  if (Math.max(...factors) > 1) {
    const spare = size.map((side, axis) => 1.5 * (box[axis + 2] - box[axis]) / side), sides = [width, height];
    const begin = [0, 1].map((axis) => Math.max(0, Math.trunc(box[axis] - spare[axis])));
    const end = [0, 1].map((axis) => Math.min(sides[axis], Math.ceil(box[axis + 2] + spare[axis])));
    ({ planes, width, height } = averaged(image, factors, begin, end));
    part = box.map((value, at) => (value - begin[at % 2]) / factors[at % 2]);
  }
  const [left, top, right, bottom] = part.map(Math.fround), [wide, high] = size;
  const across = wide !== width || left !== 0 || right !== width ? shares(width, left, right, wide) : null;
  const down = high !== height || top !== 0 || bottom !== height ? shares(height, top, bottom, high) : null;
  return planes.map((plane) => {
    const narrow = across ? mixed(plane, across, height, width, 1) : plane;
    return down ? mixed(narrow, down, wide, 1, wide) : narrow;
  });
}

function averaged({ planes, width }, [across, down], [left, top], [right, bottom]) {
  const wide = Math.ceil((right - left) / across), high = Math.ceil((bottom - top) / down);
  const made = planes.map((plane) => Uint8Array.from({ length: wide * high }, (_, at) => {
    const x = left + (at % wide) * across, y = top + Math.floor(at / wide) * down;
    const [last, lowest] = [Math.min(x + across, right), Math.min(y + down, bottom)], count = (last - x) * (lowest - y);
    let sum = Math.floor(count / 2);
    for (let row = y; row < lowest; row++) for (let column = x; column < last; column++) sum += plane[row * width + column];
    return Math.floor(sum * Math.floor(2 ** 24 / count) / 2 ** 24);
  }));
  return { planes: made, width: wide, height: high };
}

// Which pixels of a side each new pixel is made of, and their shares as whole numbers.
function shares(side, from, to, count) {
  const scale = Math.fround(to - from) / count, wide = Math.max(scale, 1), reach = 2 * wide;
  return Array.from({ length: count }, (_, at) => {
    const centre = from + (at + 0.5) * scale, first = Math.max(0, Math.trunc(centre - reach + 0.5));
    const last = Math.min(side, Math.trunc(centre + reach + 0.5));
    const found = Array.from({ length: last - first }, (_, own) => cubic((own + first - centre + 0.5) * (1 / wide)));
    const whole = found.reduce((sum, share) => sum + share, 0);
    return { first, found: found.map((share) => Math.trunc(share / whole * FINE + (share / whole < 0 ? -0.5 : 0.5))) };
  });
}

function cubic(distance) {
  const x = Math.abs(distance);
  if (x < 1) return (1.5 * x - 2.5) * x * x + 1;
  return x < 2 ? (((x - 5) * x + 8) * x - 4) * -0.5 : 0;
}

// Pixels mixed along one side, in each of `lines` that begin `line` apart and have a pixel every `step`.
function mixed(plane, parts, lines, line, step) {
  const along = step === 1, found = new Uint8ClampedArray(lines * parts.length);
  parts.forEach(({ first, found: own }, at) => {
    for (let number = 0; number < lines; number++) {
      let sum = FINE / 2;
      for (let place = 0; place < own.length; place++) sum += own[place] * plane[number * line + (first + place) * step];
      found[along ? number * parts.length + at : at * lines + number] = Math.floor(sum / FINE);
    }
  });
  return found;
}

// A picture to be shown on the page, with at most so many pixels along its longer side; a few pixels become large ones.
function photo({ canvas, width, height }, most) {
  const longer = Math.max(width, height), times = longer < most / 2 ? Math.floor(most / 2 / longer) : Math.min(1, most / longer);
  const shown = document.createElement("canvas"), pen = shown.getContext("2d");
  [shown.width, shown.height] = [width, height].map((side) => Math.max(1, Math.round(side * times)));
  pen.imageSmoothingEnabled = times < 1;
  pen.drawImage(canvas, 0, 0, shown.width, shown.height);
  return shown.toDataURL("image/jpeg", 0.85);
}

function checkSize(name, width, height, most) {
  if (width * height > most) throw new Error(`the ${name} has ${width} x ${height} pixels, but this model reads at most ${most}.`);
}

// A new file takes a while, so a person is told, and the browser given the time to show it.
const seen = new WeakSet();
FIRST = async (given) => {
  const files = given.filter((one) => one instanceof File && !seen.has(one));
  if (!files.length) return;
  files.forEach((file) => seen.add(file));
  say("Computing …");
  await new Promise((done) => { setTimeout(done, 20); });
};

document.addEventListener("paste", ({ clipboardData: { files: [file] } }) => {
  if (file) controls.find((control) => control.paste)?.paste(file);
});
