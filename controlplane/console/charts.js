// Draws charts as SVG at their displayed width, so that the font size is the same on every screen.

const SVG = "http://www.w3.org/2000/svg";
// The assumed width of a letter in pixels. An average letter at 12 px is narrower.
const LETTER = 7.4;
// The height of a line in pixels.
const LINE = 16;

export function shape(name, attributes = {}, ...children) {
  const node = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, String(value));
  node.append(...children);
  return node;
}

const round = (value) => Math.round(value * 10) / 10;
const text = (x, y, content, anchor = "start", kind = "") =>
  shape("text", { x: round(x), y: round(y), "text-anchor": anchor, ...(kind && { class: kind }) }, content);
const widthOf = (content) => content.length * LETTER;
const shorten = (content, widthMax) => {
  const lengthMax = Math.max(3, Math.floor(widthMax / LETTER));
  return content.length <= lengthMax ? content : `${content.slice(0, lengthMax - 1).trimEnd()}…`;
};

function drawing(title, width, height, kind, ...parts) {
  return shape("svg", { class: `chart ${kind}`, width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": title },
    shape("title", {}, title), ...parts);
}

// Returns at most 20 round numbers. They enclose all values from `min` to `max`.
function ticks(min, max, count = 4) {
  const span = Math.max(1, max - min);
  const rough = span / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = Math.max(1, [1, 2, 2.5, 5, 10].find((each) => each * power >= rough) * power);
  const values = [];
  for (let factor = Math.floor(min / step); values.length < 20; factor += 1) {
    values.push(factor * step);
    if (factor * step >= max) break;
  }
  return values;
}

// Draws a vertical bar for each row, and a line at the `previous` value. `axis` formats a value on the vertical axis.
// Omits labels that do not fit.
export function bars({ title, width, rows, axis, height = 210 }) {
  const values = rows.flatMap(({ value, previous }) => [value, previous || 0]);
  const all = ticks(Math.min(0, ...values), Math.max(1, ...values));
  // The part below zero is only as high as needed, because negative values are usually small.
  const min = Math.max(all[0], Math.min(0, ...values) * 1.15);
  const marks = all.filter((mark) => mark >= min);
  const names = marks.map(axis);
  const left = Math.ceil(Math.max(...names.map(widthOf))) + 8;
  const [top, bottom] = [10, height - 22];
  const y = (value) => bottom - ((value - min) / (marks.at(-1) - min)) * (bottom - top);
  const step = (width - left - 2) / rows.length;
  const labelInterval = [1, 2, 3, 4, 6, 12].find((each) => each * step >= Math.max(...rows.map(({ label }) => widthOf(label))) + 6) || 12;
  const bar = Math.max(2, step * 0.68);
  return drawing(title, width, height, "bars",
    ...marks.flatMap((mark, index) => [
      shape("line", { class: mark === 0 ? "zero" : "grid", x1: left, x2: width, y1: round(y(mark)), y2: round(y(mark)) }),
      text(left - 6, y(mark) + 4, names[index], "end")]),
    ...rows.map(({ label, value, previous, description }, index) => {
      const x = left + index * step + (step - bar) / 2;
      const parts = [shape("title", {}, description),
        shape("rect", { class: "room", x: round(left + index * step), y: top, width: round(step), height: bottom - top })];
      if (value) parts.push(shape("rect", { class: "value", x: round(x), width: round(bar), y: round(Math.min(y(0), y(value))), height: round(Math.max(1, Math.abs(y(value) - y(0)))) }));
      if (previous) parts.push(shape("line", { class: "before-edge", x1: round(x - step * 0.12), x2: round(x + bar + step * 0.12), y1: round(y(previous)), y2: round(y(previous)) }),
        shape("line", { class: "before", x1: round(x - step * 0.12), x2: round(x + bar + step * 0.12), y1: round(y(previous)), y2: round(y(previous)) }));
      if (index % labelInterval === 0) parts.push(text(x + bar / 2, height - 6, label, "middle"));
      return shape("g", {}, ...parts);
    }));
}

// Draws a horizontal bar for each row, below the name and the caption of the row.
export function shares({ title, width, rows }) {
  const max = Math.max(1, ...rows.map(({ value }) => Math.abs(value)));
  const row = LINE + 22;
  return drawing(title, width, rows.length * row, "shares", ...rows.flatMap(({ label, value, caption }, index) => {
    const y = index * row;
    return [
      text(0, y + 12, shorten(label, width - widthOf(caption) - 12), "start", "name"),
      text(width, y + 12, caption, "end"),
      shape("rect", { class: "room-full", x: 0, y: y + LINE + 2, width, height: 9, rx: 2 }),
      shape("rect", { class: value < 0 ? "value below" : "value", x: 0, y: y + LINE + 2, width: round(Math.max(1, (Math.abs(value) / max) * width)), height: 9, rx: 2 }),
    ];
  }));
}

// Draws rows of cells. The shade of a cell shows its count: there is one shade for 0, and `levels` shades for more.
export function heatMap({ title, width, rows, columns, levels = 5 }) {
  const max = Math.max(1, ...rows.flatMap(({ cells }) => cells));
  const left = Math.ceil(Math.max(...rows.map(({ label }) => widthOf(label)))) + 14;
  const [cellWidth, cellHeight] = [(width - left) / columns.length, 22];
  const labelInterval = [1, 2, 3, 4, 6].find((each) => each * cellWidth >= widthOf("00") + 8) || 12;
  return drawing(title, width, rows.length * cellHeight + 20, "heat",
    ...rows.flatMap(({ label, cells, description }, index) => [
      text(left - 8, index * cellHeight + 15, label, "end"),
      ...cells.map((count, column) => shape("g", {}, shape("title", {}, description(column)),
        shape("rect", {
          class: `level-${count ? Math.max(1, Math.ceil((count / max) * levels)) : 0}`,
          x: round(left + column * cellWidth + 1), y: index * cellHeight + 1, width: round(Math.max(1, cellWidth - 2)), height: cellHeight - 2, rx: 2,
        })))]),
    ...columns.flatMap((heading, column) => column % labelInterval ? [] : [text(left + (column + 0.5) * cellWidth, rows.length * cellHeight + 16, heading, "middle")]));
}
