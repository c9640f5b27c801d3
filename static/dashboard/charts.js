// Charts with a cursor that all of a page share. The server has drawn each already and written the numbers into
// data-chart; what is made here lies over that drawing and is made anew when the numbers or the theme change.

import uPlot from "../vendor/uplot/uplot.js";

const DASHES = [[], [4, 3], [1, 3], [8, 3, 2, 3], [12, 4]];
const HEIGHT = 150;
const EDGE = 2; // so that a line at the top or the bottom is not cut in half

/** Figure → what is drawn in it. */
const drawn = new Map();

/** Draws every chart of the panel whose numbers are new, and forgets those that are gone. */
export function draw(panel) {
  for (const [figure, { plot }] of drawn) {
    if (panel.contains(figure)) continue;
    plot.destroy();
    drawn.delete(figure);
  }
  for (const figure of panel.querySelectorAll("[data-chart]")) {
    if (drawn.get(figure)?.source !== figure.dataset.chart) make(figure);
  }
}

function redraw() {
  for (const figure of [...drawn.keys()]) make(figure);
}

function make(figure) {
  const home = figure.querySelector("[data-own]");
  const held = drawn.get(figure);
  held?.plot.destroy();
  const source = figure.dataset.chart;
  const chart = JSON.parse(source);
  const plot = new uPlot(options(chart, home, figure), [chart.at, ...chart.lines.map((line) => line.values)], home);
  drawn.set(figure, { plot, source });
  figure.classList.add("is-drawn");
  walk(home, plot, chart);
  resized.observe(home);
}

function options(chart, home, figure) {
  return {
    width: home.clientWidth,
    height: HEIGHT + 2 * EDGE,
    padding: [EDGE, 0, EDGE, 0],
    legend: { show: false },
    cursor: { y: false, drag: { x: false, y: false }, points: { size: 7 }, sync: { key: "range" } },
    scales: { x: { time: false, range: [chart.at[0], chart.at.at(-1)] }, y: { range: [0, chart.top || 1] } },
    axes: [{ show: false }, { show: false }], // the server's, which are text
    series: [{}, ...chart.lines.map((line) => series(line, home))],
    hooks: { draw: [grid], setCursor: [(plot) => tell(figure, chart, plot.cursor.idx)] },
  };
}

function series(line, home) {
  const colour = colourOf(line.mark ? `is-${line.mark}` : "soft", line.mark ? "--fill" : "", home);
  return { label: line.label, stroke: colour, width: 1.75, dash: DASHES[line.dash % DASHES.length], points: { filter: alone, size: 4, fill: colour } };
}

/** The places of values between two gaps, which no line would show. */
function alone(plot, index) {
  const values = plot.data[index];
  const known = (place) => values[place] !== null && values[place] !== undefined;
  return values.map((_, place) => place).filter((place) => known(place) && !known(place - 1) && !known(place + 1));
}

/** Three lines between top and bottom. */
function grid(plot) {
  const { ctx, bbox } = plot;
  ctx.save();
  ctx.globalCompositeOperation = "destination-over"; // under the lines
  ctx.strokeStyle = colourOf("", "--line", plot.root);
  ctx.lineWidth = devicePixelRatio;
  ctx.setLineDash([]);
  ctx.beginPath();
  for (let step = 0; step <= 3; step += 1) {
    const y = Math.round(bbox.top + (bbox.height * step) / 3) + 0.5;
    ctx.moveTo(bbox.left, y);
    ctx.lineTo(bbox.left + bbox.width, y);
  }
  ctx.stroke();
  ctx.restore();
}

/** A colour of the design system as a canvas takes it: the browser resolves the theme. */
function colourOf(name, property, home) {
  const probe = document.createElement("span");
  if (name) probe.className = name;
  home.append(probe);
  if (property) probe.style.color = `var(${property})`;
  const colour = getComputedStyle(probe).color;
  probe.remove();
  return colour;
}

/** What the lines are at the cursor, in words. */
function tell(figure, chart, place) {
  let line = figure.querySelector(".readout");
  if (place === null || place === undefined) return line?.remove();
  if (!line) {
    line = document.createElement("p");
    line.className = "readout small";
    figure.querySelector("[data-own]").append(line);
  }
  const told = chart.lines.map((each) => `${each.label} ${each.texts[place]}${each.values[place] === null ? "" : chart.unit}`);
  line.textContent = `${chart.times[place]}: ${told.join(", ")}`;
}

/** The arrow keys move the cursor. */
function walk(home, plot, chart) {
  home.tabIndex = 0;
  home.setAttribute("role", "img");
  home.setAttribute("aria-label", `${chart.title}. The arrow keys move along it; the table below has the same numbers.`);
  home.onkeydown = (event) => {
    const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!by) return;
    event.preventDefault();
    const place = Math.max(0, Math.min(chart.at.length - 1, (plot.cursor.idx ?? chart.at.length - 1) + by));
    plot.setCursor({ left: plot.valToPos(chart.at[place], "x"), top: 0 });
  };
  home.onblur = () => plot.setCursor({ left: -10, top: -10 });
}

const resized = new ResizeObserver((entries) => {
  for (const { target } of entries) {
    const held = drawn.get(target.closest("[data-chart]"));
    if (held && target.clientWidth && held.plot.width !== target.clientWidth) held.plot.setSize({ width: target.clientWidth, height: HEIGHT + 2 * EDGE });
  }
});

matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
new MutationObserver(redraw).observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
