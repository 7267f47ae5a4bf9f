// Pictures in SVG: lines over time, bars, histograms. Colours are classes of the style sheet.

import { h, s } from "./dom.js";

const [WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM] = [480, 170, 58, 10, 10, 24];

/** Round numbers that span a range, about four of them. */
const ticks = (low, high) => {
  if (!(high > low)) return [low];
  const rough = (high - low) / 4;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((candidate) => candidate >= rough);
  const found = [];
  for (let at = Math.ceil(low / step); at * step <= high + step / 1e6; at += 1) found.push(at * step);
  return found;
};

export const short = (value) => {
  const size = Math.abs(value);
  for (const [unit, from] of [["T", 1e12], ["G", 1e9], ["M", 1e6], ["k", 1e3]]) {
    if (size >= from) return `${Number((value / from).toPrecision(3))}${unit}`;
  }
  return String(Number(value.toPrecision(3)));
};

const frame = (label, low, high, format) => {
  const y = (value) => HEIGHT - BOTTOM - ((value - low) / (high - low || 1)) * (HEIGHT - TOP - BOTTOM);
  const lines = ticks(low, high).map((tick) => [
    s("line", { class: "rule", x1: LEFT, x2: WIDTH - RIGHT, y1: y(tick), y2: y(tick) }),
    s("text", { class: "axis end", x: LEFT - 6, y: y(tick) + 4 }, format(tick))]);
  return { y, element: s("svg", { class: "chart", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": label }, lines) };
};

const legend = (names) =>
  names.length > 1 && h("p", { class: "legend" }, names.map((name, at) => h("span", { class: `key s${(at % 4) + 1}` }, name)));

/** `series`: `{name, points: [[x, y], …]}`; y null is a gap. `xText` writes the ends of the axis. */
export const lines = (label, series, { format = short, xText = short, fromZero = true } = {}) => {
  const points = series.flatMap((one) => one.points).filter(([, y]) => y !== null);
  if (points.length === 0) return h("p", { class: "faint" }, "no numbers yet");
  const [xs, ys] = [points.map(([x]) => x), points.map(([, y]) => y)];
  const extreme = (values, pick) => values.reduce((a, b) => pick(a, b));
  const [x0, x1] = [extreme(xs, Math.min), extreme(xs, Math.max)];
  const low = fromZero ? Math.min(0, extreme(ys, Math.min)) : extreme(ys, Math.min);
  const high = extreme(ys, Math.max) > low ? extreme(ys, Math.max) : low + 1;
  const { y, element } = frame(label, low, high, format);
  const x = (value) => LEFT + ((value - x0) / (x1 - x0 || 1)) * (WIDTH - LEFT - RIGHT);
  series.forEach((one, at) => {
    let isDrawing = false;
    const path = one.points.map(([px, py]) => {
      const piece = py === null ? "" : `${isDrawing ? "L" : "M"}${x(px).toFixed(1)} ${y(py).toFixed(1)}`;
      isDrawing = py !== null;
      return piece;
    }).join("");
    element.append(s("path", { class: `line s${(at % 4) + 1}`, d: path }));
    if (one.points.length === 1 && one.points[0][1] !== null) {
      element.append(s("circle", { class: `dot s${(at % 4) + 1}`, cx: x(one.points[0][0]), cy: y(one.points[0][1]), r: 3 }));
    }
  });
  element.append(s("text", { class: "axis", x: LEFT, y: HEIGHT - 6 }, xText(x0)), s("text", { class: "axis end", x: WIDTH - RIGHT, y: HEIGHT - 6 }, xText(x1)));
  return h("figure", { class: "picture" }, element, legend(series.map((one) => one.name)));
};

const BARS_MAX = 60;

/** `bars`: `[name, value]`. */
export const bars = (label, all, { format = short } = {}) => {
  const shown = all.slice(0, BARS_MAX);
  if (shown.length === 0) return h("p", { class: "faint" }, "no numbers");
  const [low, high] = [Math.min(0, ...shown.map(([, v]) => v)), Math.max(0, ...shown.map(([, v]) => v))];
  const { y, element } = frame(label, low, high > low ? high : low + 1, format);
  const step = (WIDTH - LEFT - RIGHT) / shown.length;
  shown.forEach(([name, value], at) => {
    const [top, end] = [Math.min(y(value), y(0)), Math.max(y(value), y(0))];
    element.append(s("rect", { class: "bar", x: LEFT + at * step + step * 0.1, width: step * 0.8, y: top, height: Math.max(end - top, 0.5) },
      s("title", null, `${name}: ${value}`)));
    const room = Math.floor(step / 6.5);
    if (room >= 2) element.append(s("text", { class: "axis middle", x: LEFT + (at + 0.5) * step, y: HEIGHT - 6 }, name.length > room ? `${name.slice(0, room - 1)}…` : name));
  });
  const rest = all.length - shown.length;
  return h("figure", { class: "picture" }, element, rest > 0 && h("figcaption", { class: "faint" }, `and ${rest} more`));
};

/** How often values occur, in about as many classes as their number warrants. */
export const histogram = (label, values) => {
  if (values.length === 0) return h("p", { class: "faint" }, "no numbers");
  const [low, high] = [values.reduce((a, b) => Math.min(a, b)), values.reduce((a, b) => Math.max(a, b))];
  const classes = high > low ? Math.min(40, Math.max(1, Math.ceil(Math.log2(values.length) + 1))) : 1;
  const counts = new Array(classes).fill(0);
  values.forEach((value) => (counts[Math.min(classes - 1, Math.floor(((value - low) / (high - low || 1)) * classes))] += 1));
  return bars(label, counts.map((n, at) => [short(low + ((high - low) * at) / classes), n]));
};
