// The image, large; and a tile for each word of the output, bright where it attended to.
const LIT = 6, DARK = 0.2; // pixels of a cell along a side, and the light where there is no attention

function imageView({ tokens, weights, source, grid: [rows, columns], picture: { photo: address, aspect, box } }) {
  const [left, top, right, bottom] = box.map((side) => `${(100 * side).toFixed(2)}%`);
  const inset = { left, top, width: `${100 * (box[2] - box[0])}%`, height: `${100 * (box[3] - box[1])}%` };
  const shape = { aspectRatio: String(aspect), backgroundImage: `url(${address})` };
  const styled = (element, style) => { Object.assign(element.style, style); return element; };
  const cells = source.map((name, at) => make("span", { tabindex: -1, role: "button", "aria-label": name, "data-s": at }));
  const lattice = { gridTemplateColumns: `repeat(${columns}, 1fr)`, gridTemplateRows: `repeat(${rows}, 1fr)` };
  const large = styled(make("div", { class: "picture large" }, styled(make("div", { class: "light" }), inset),
    styled(make("div", { class: "cells" }, ...cells), { ...inset, ...lattice })), shape);
  const tiles = tokens.map((token, step) => {
    const most = `${Math.round(100 * Math.max(...weights[step]))}%`, index = step ? -1 : 0;
    const light = styled(make("div", { class: "light" }), { ...inset, backgroundImage: `url(${lightOf(weights[step], rows, columns)})` });
    return make("div", { class: "tile", role: "button", tabindex: index, "data-t": step, "aria-label": `${token}, largest weight ${most}` },
      make("p", {}, make("span", {}, token), make("small", {}, most)), styled(make("div", { class: "picture" }, light), shape));
  });
  return [large, make("div", { class: "tiles" }, ...tiles),
    note("Bright: what a word attended to, relative to its largest weight, beside the word.")];
}

// What lies on an image: black, and clear where weights are large. Cells flow into each other as cubic B-splines.
function lightOf(weights, rows, columns) {
  const [high, wide] = [rows * LIT, columns * LIT], down = splines(high, rows), across = splines(wide, columns);
  const peak = Math.max(...spread(weights, splines(rows, rows), splines(columns, columns))) || 1;
  const canvas = Object.assign(document.createElement("canvas"), { width: wide, height: high }), pen = canvas.getContext("2d");
  const image = pen.createImageData(wide, high);
  spread(weights, down, across).forEach((light, at) => {
    image.data[4 * at + 3] = Math.round(255 * (1 - DARK) * (1 - Math.min(light / peak, 1)));
  });
  pen.putImageData(image, 0, 0);
  return canvas.toDataURL();
}

// Weights of cells to those of pixels, row by row.
function spread(weights, down, across) {
  const rows = down[0].length, columns = across[0].length;
  const narrow = Array.from({ length: rows }, (_, row) => across.map((shares) =>
    shares.reduce((sum, share, column) => sum + share * weights[row * columns + column], 0)));
  return down.flatMap((shares) => across.map((_, at) => shares.reduce((sum, share, row) => sum + share * narrow[row][at], 0)));
}

// How much of each cell falls on each pixel of a side; the outermost cells go on beyond the edge.
function splines(pixels, cells) {
  return Array.from({ length: pixels }, (_, at) => {
    const place = (at + 0.5) / pixels * cells - 0.5, shares = new Array(cells).fill(0);
    for (let beside = -2; beside < cells + 2; beside++) {
      const far = Math.abs(place - beside);
      const bump = far < 1 ? 2 / 3 - far ** 2 + far ** 3 / 2 : far < 2 ? (2 - far) ** 3 / 6 : 0;
      shares[Math.min(Math.max(beside, 0), cells - 1)] += bump;
    }
    return shares;
  });
}

// A cell has its row and column.
VIEW.push({
  fits: ({ picture }) => picture,
  draws: imageView,
  names: ({ weights: [first], grid: [, columns] }) => first.map((_, at) => `row ${Math.floor(at / columns) + 1}, column ${at % columns + 1}`),
});
