// What an open page does: shows the figures that come, fetches its panel anew when more than figures changed, lets ages
// tick, and says how fresh everything is. Without this script the page is whole, only not live.

import { forms, icon } from "./forms.js";
import { keys } from "./keys.js";
import { Live } from "./live.js";
import { element, morph } from "./morph.js";
import { clock, serverNow, setClock, tick, turning } from "./time.js";

const line = document.getElementById("live");
const panel = document.getElementById("panel");
const pauseButton = document.getElementById("pause");
const trouble = document.getElementById("trouble");
const cutOff = document.getElementById("cut-off");
const favicon = document.getElementById("favicon");

const AGAIN_MS = 3000;

document.body.classList.add("has-script");
setClock(line.dataset.at, line.dataset.zone, answered());

/** When the page came: this script may have come much later. */
function answered() {
  const [navigation] = performance.getEntriesByType("navigation");
  const now = performance.now();
  return Date.now() - (now - (navigation?.responseStart ?? now));
}

/* ---------------------------------------------------------------------------------------------------------- figures */

let shape = "";
let known = {};
const titlePrefix = line.dataset.title ? `${line.dataset.title}: ` : "";
const title = document.title.slice(titlePrefix.length);

function show(frame) {
  setClock(frame.at);
  known = frame.type === "figures" ? frame.figures : { ...known, ...frame.figures };
  for (const key of frame.gone ?? []) delete known[key];
  print(frame.figures);
  document.title = (known.trouble ? `${known.trouble}: ` : "") + title;
  const mark = favicon.dataset[known.favicon || "calm"];
  if (favicon.getAttribute("href") !== mark) favicon.setAttribute("href", mark);
  storeIs(frame.trouble);
  announce();
  const first = !shape;
  const changed = known.shape !== shape;
  shape = known.shape;
  if (!first || frame.version !== line.dataset.version) refreshSoon(changed && !first);
}

let held; // on hold: since when, and all figures as they are by now

/** While the page is on hold what comes is kept; shown is what has changed meanwhile, when it goes on. */
function hold(frame) {
  held.figures = frame.type === "figures" ? frame.figures : { ...held.figures, ...frame.figures };
  say();
}

/** Figures of this page that are other than it shows. */
function changesHeld() {
  const spots = [...document.querySelectorAll("[data-figure]")];
  const other = spots.filter((spot) => (held.figures[spot.dataset.figure] ?? spot.textContent) !== spot.textContent);
  return new Set(other.map((spot) => spot.dataset.figure)).size;
}

/** Writes the figures that stand on the page; one of each panel may light up. */
function print(figures) {
  const lit = new Set();
  for (const spot of document.querySelectorAll("[data-figure]")) {
    const key = spot.dataset.figure;
    const [text, exact] = [figures[key], figures[`exact.${key}`]];
    if (exact) spot.title = exact;
    else if (text && !known[`exact.${key}`]) spot.removeAttribute("title");
    if (text === undefined || spot.textContent === text) continue;
    spot.textContent = text;
    const home = spot.closest(".panel");
    if (home && !lit.has(home)) {
      lit.add(home);
      spot.classList.add("is-fresh");
      spot.addEventListener("animationend", () => spot.classList.remove("is-fresh"), { once: true });
    }
  }
  for (const bar of document.querySelectorAll("[data-bar]")) {
    const [value, max] = (figures[bar.dataset.bar] ?? "").split("/");
    if (max) Object.assign(bar, { max: Number(max), value: Number(value) });
  }
  for (const badge of document.querySelectorAll("[data-when]")) {
    const text = figures[badge.dataset.when];
    if (text !== undefined) badge.hidden = text === "0" || text === "–";
  }
}

let away = !trouble.hidden;
let alone = false; // no answer from the web process either

function storeIs(why) {
  if (Boolean(why) === away) return;
  away = Boolean(why);
  trouble.hidden = !away;
  if (away) trouble.querySelector("b").textContent = why;
  readOut(why || "The store answers again.");
  dim();
}

/** The line to the web process is broken, or whole again. */
function lineIs(is, since) {
  if (is === alone) return;
  alone = is;
  cutOff.hidden = !is;
  if (is) cutOff.querySelector("time").textContent = clock(serverNow() - (Date.now() - since));
  readOut(is ? cutOff.querySelector("b").textContent : "This server answers again.");
  dim();
}

/** Figures that are not fresh are dimmed, and nothing can be done until they are. */
function dim() {
  const was = document.body.classList.contains("is-stale");
  const is = away || alone;
  if (was === is) return;
  document.body.classList.toggle("is-stale", is);
  for (const button of document.querySelectorAll("#panel form:not([data-keep]) button.button")) button.disabled = is;
  for (const link of document.querySelectorAll("#panel a.deed")) switchOff(link, is);
  if (was) refreshSoon(true);
}

/** A link that leads to an action has no address meanwhile. */
function switchOff(link, is) {
  const [from, to] = is ? ["href", "data-href"] : ["data-href", "href"];
  if (!link.hasAttribute(from)) return;
  link.setAttribute(to, link.getAttribute(from));
  link.removeAttribute(from);
  link.ariaDisabled = is ? "true" : null;
}

/* ------------------------------------------------------------------------------------------------------ read aloud */

const ANNOUNCED_EVERY_MS = 10_000;

/** To whoever hears the page: politely, by the one region for it. What was done is told by the messages of actions. */
function readOut(sentence) {
  document.getElementById("announce").textContent = sentence;
}

let announced = { text: known.headline, at: 0 };
let announcing;

/** Findings, not figures: what needs somebody is read out when it changes, one sentence in ten seconds at most. */
function announce() {
  announced.text ??= known.headline; // what the page said when it came is not news
  if (known.headline === announced.text || announcing) return;
  announcing = setTimeout(
    () => {
      announcing = undefined;
      if (known.headline === announced.text) return;
      announced = { text: known.headline, at: Date.now() };
      readOut(`${known.headline}.`);
    },
    Math.max(0, announced.at + ANNOUNCED_EVERY_MS - Date.now()),
  );
}

/* ------------------------------------------------------------------------------------------------------------ panel */

const LONGEST_ADDRESS = 12_000; // of a request for the rows that are shown; those beyond stay as they were loaded

const SLOW_MS = 1_000; // from then on it is said what is waited for

let fetching = false;
let slow = false;
let again = false;
let timer;
let refreshedAt = Date.now();
let took = 0;

function refreshSoon(atOnce) {
  if (!panel || document.hidden || held) return;
  // What the server needs long for is asked for rarely: at most a tenth of the time is spent on it.
  const gap = Math.max(Number(panel.dataset.refresh) * 1000, took * 10);
  const wait = atOnce ? 0 : Math.max(0, refreshedAt + gap - Date.now());
  if (timer && !atOnce) return;
  clearTimeout(timer);
  timer = setTimeout(refresh, wait);
}

async function refresh() {
  timer = undefined;
  if (!panel) return;
  if (fetching) {
    again = true;
    return;
  }
  if (reading()) {
    refreshSoon(false);
    return;
  }
  fetching = true;
  const started = performance.now();
  const waits = setTimeout(() => isSlow(true), SLOW_MS);
  try {
    await (document.getElementById("rows") ? fetchRows() : fetchPanel());
  } catch {
    // the line to the server says what is wrong; the page keeps what it has
  }
  clearTimeout(waits);
  isSlow(false);
  took = performance.now() - started;
  refreshedAt = Date.now();
  fetching = false;
  if (again) {
    again = false;
    refreshSoon(false);
  }
}

function isSlow(is) {
  if (slow === is) return;
  slow = is;
  panel.setAttribute("aria-busy", String(is));
  say();
}

/** Progress and countdowns change without a change of any figure: where they are shown they are asked for. */
function poll() {
  const seconds = Math.min(...[...(panel?.querySelectorAll("[data-poll]") ?? [])].map((part) => Number(part.dataset.poll)));
  if (!held && status.kind === "live" && Number.isFinite(seconds) && Date.now() - refreshedAt >= Math.max(seconds * 1000, took * 10)) refreshSoon(true);
}

/** True while text of the panel is being selected: changing it now would take it away. */
function reading() {
  const selection = getSelection();
  return selection && !selection.isCollapsed && panel.contains(selection.anchorNode);
}

/** The text at this address; nothing where it is not to be shown: there is none, or the reader has begun to read. */
async function fragment(url) {
  const asked = held;
  const response = await fetch(url, { headers: { Accept: "text/html" } });
  if (response.status === 404) location.reload();
  const text = await response.text();
  return response.ok && !reading() && held === asked ? text : "";
}

async function fetchPanel() {
  const text = await fragment(panel.dataset.fragment);
  if (!text) return;
  const focused = panel.contains(document.activeElement);
  morph(panel, text);
  offer(panel);
  charts();
  // A button whose action is over takes the focus with it; the next Tab goes on from the page, not from its top.
  if (focused && document.activeElement === document.body) document.getElementById("main").focus({ preventScroll: true });
  if (document.body.classList.contains("is-stale")) return;
  tick();
}

/** Rows that are shown change in place and stay where they are; newer ones are counted and come when asked for. */
async function fetchRows() {
  const body = document.getElementById("rows");
  const url = new URL(panel.dataset.fragment, location.href);
  url.searchParams.set("updates", "1");
  const shownRows = body.querySelectorAll(":scope > .is-row");
  url.searchParams.set("rows", shownRows.length);
  for (const row of shownRows) {
    if (url.href.length > LONGEST_ADDRESS) break;
    url.searchParams.append("shown", row.dataset.key);
  }
  const text = await fragment(url);
  if (!text) return;
  const sent = new DOMParser().parseFromString(text, "text/html");
  const rows = new Map([...body.children].map((row) => [row.dataset.key, row]));
  for (const wanted of sent.querySelectorAll("tr")) {
    const row = rows.get(wanted.dataset.key);
    if (!row) continue;
    if ("gone" in wanted.dataset) row.classList.add("is-over");
    else {
      element(row, wanted);
      row.classList.toggle("is-over", "over" in wanted.dataset);
    }
  }
  for (const part of sent.querySelectorAll("[data-part]")) {
    const shown = panel.querySelector(`[data-part="${part.dataset.part}"]`);
    if (shown) element(shown, part);
  }
  const { newer, newerMany } = sent.querySelector("table").dataset;
  const link = document.querySelector("[data-newer]");
  if (link) {
    link.hidden = newer === "0";
    link.querySelector("[data-newer-count]").textContent = newerMany === undefined ? newer : `${newer} or more`;
  }
  tick();
}

/** What ``load`` imports. If that cannot be fetched (a web process is just replaced), it is asked for until it comes. */
function fetched(load) {
  return load().catch((error) => {
    if (!/import/i.test(error.message)) throw error; // it came, and is wrong
    return new Promise((resolve) => setTimeout(resolve, AGAIN_MS)).then(() => fetched(load));
  });
}

/** Charts are drawn by a script that only pages with charts load. */
async function charts() {
  if (panel?.querySelector("[data-chart]")) (await fetched(() => import("./charts.js"))).draw(panel);
}

/** A look into a row: by a script that is fetched when somebody wants one. */
function peek(event) {
  const link = event.target.closest?.("[data-peek]");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  fetched(() => import("./peek.js")).then(({ peek }) => peek(link));
}

/** Shows what only works with script. */
function offer(part) {
  for (const button of part.querySelectorAll("[data-copy]")) button.hidden = false;
}

/* ------------------------------------------------------------------------------------------------------- live state */

let status = { kind: "connecting" };

function say() {
  const at = status.at ? clock(status.at) : "";
  const kind = held && !live.over ? "held" : status.kind;
  const parts = {
    connecting: () => ["", "Connecting", ""],
    live: () => (document.body.classList.contains("is-stale") ? ["warning", "Store unreachable", ""] : ["succeeded", "Live", slow ? "waits for this page" : at]),
    polling: () => ["succeeded", "Every 5 s", at],
    held: () => ["pause", "On hold", `since ${clock(serverNow() - (Date.now() - held.since))} · ${counted(changesHeld(), "change")}`],
    reconnecting: () => ["warning", status.silent === undefined ? "Reconnecting" : "Offline", `try ${status.tries + 1} in ${Math.max(0, Math.ceil((status.next - Date.now()) / 1000))} s`],
    "signed-out": () => ["warning", "Signed out", ""],
    "not-allowed": () => ["warning", "No longer allowed", ""],
  }[kind]();
  const words = parts.join("|");
  if (line.dataset.said === words) return;
  line.dataset.said = words;
  const [shape, strong, soft] = parts;
  const nodes = [];
  if (shape) nodes.push(icon(shape));
  const bold = document.createElement("b");
  bold.textContent = strong;
  nodes.push(bold);
  if (soft) {
    const rest = document.createElement("span");
    rest.className = "soft wide-text";
    rest.textContent = soft;
    nodes.push(" ", rest);
  }
  if (kind === "reconnecting") nodes.push(control("button", "Now", () => live.now()));
  if (kind === "signed-out") {
    const link = control("a", "Log in");
    link.href = `${line.dataset.login}?next=${encodeURIComponent(location.pathname + location.search)}`;
    nodes.push(link);
  }
  line.className = `live is-${shape === "succeeded" ? "succeeded" : "warning"}`;
  line.replaceChildren(...nodes);
}

function counted(number, one) {
  return `${number} ${one}${number === 1 ? "" : "s"}`;
}

function control(name, text, onClick) {
  const made = document.createElement(name);
  made.className = "button quiet";
  made.textContent = text;
  if (name === "button") made.type = "button";
  if (onClick) made.addEventListener("click", onClick);
  return made;
}

const live = new Live({
  socketUrl: line.dataset.live,
  snapshotUrl: line.dataset.snapshot,
  onFigures: (frame) => (held ? hold(frame) : show(frame)),
  onStatus: (next) => {
    status = next;
    lineIs(next.kind === "reconnecting" && next.silent !== undefined, next.silent);
    say();
  },
});

function togglePause() {
  held = held ? undefined : { since: Date.now(), figures: known };
  if (held) timer = clearTimeout(timer); // what was about to be fetched comes when the page goes on
  else live.resume(); // with all figures anew
  say();
  pauseButton.setAttribute("aria-pressed", String(Boolean(held)));
  pauseButton.querySelector(".wide").textContent = held ? "Go on" : "Hold";
  pauseButton.querySelector(".icon").replaceWith(icon(held ? "play" : "pause"));
}

pauseButton.hidden = false;
pauseButton.addEventListener("click", togglePause);
forms(refresh);
document.addEventListener("panel:refresh", refresh);
keys({ togglePause });
ownZone();
turning();
if (panel) offer(panel);
if (document.querySelector("#rows, .in-list")) fetched(() => import("./neighbours.js")).then(({ lists }) => lists());
if (document.getElementById("rows")) fetched(() => import("./picking.js")).then(({ picking }) => picking());
document.addEventListener("click", peek);
charts();
say();
setInterval(() => {
  if (document.hidden) return;
  tick();
  poll();
  say();
}, 1000);
live.start();

/** Offers the zone of this browser where the zone can be chosen. */
function ownZone() {
  const button = document.querySelector("[data-own-zone]");
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  if (!button || !zone) return;
  button.value = zone;
  button.textContent += `: ${zone}`;
  button.hidden = false;
}
