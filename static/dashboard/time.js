// Moments and ages, by the server's clock and in the reader's zone.

const AHEAD_MATTERS_MS = 2_000; // less may be the way from the server to here
const MOMENTS = "times-as-moments"; // what the reader chose, in this browser

let serverAhead = 0;
let format;
let dated;
let asMoments = localStorage.getItem(MOMENTS) !== null;

/** Sets the server's clock by a moment that it told at `heard`, and the zone that the page is written in. */
export function setClock(at, zone, heard = Date.now()) {
  if (at) serverAhead = Date.parse(at) - heard;
  if (zone && !format) {
    format = clockOf(zone);
    dated = clockOf(zone, { day: "numeric", month: "short" });
  }
  for (const line of document.querySelectorAll("[data-skew]")) {
    const wrong = Math.abs(serverAhead) > AHEAD_MATTERS_MS;
    line.hidden = !wrong;
    const text = wrong ? `This device’s clock is ${age(Math.abs(serverAhead) / 1000)} ${serverAhead > 0 ? "behind" : "ahead"}. Ages here go by the server’s.` : "";
    if (line.textContent !== text) line.textContent = text;
  }
}

function clockOf(zone, more = {}) {
  const options = { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23", ...more };
  try {
    return new Intl.DateTimeFormat("en-GB", { ...options, timeZone: zone });
  } catch {
    return new Intl.DateTimeFormat("en-GB", { ...options, timeZone: "UTC" }); // a zone that this browser does not know
  }
}

export const serverNow = () => Date.now() + serverAhead;

/** `13:42:08`, in the reader's zone. */
export const clock = (at) => format.format(new Date(at));

/** A length of time in at most two units, as `dashboard.formats.age` writes it. */
export function age(seconds) {
  const whole = Math.floor(seconds);
  const two = (large, word, small, smaller) => {
    const rest = Math.floor((whole % large) / small);
    return `${Math.floor(whole / large)} ${word}${rest ? ` ${rest} ${smaller}` : ""}`;
  };
  if (whole < 60) return `${whole} s`;
  if (whole < 600) return two(60, "min", 1, "s");
  if (whole < 3600) return `${Math.floor(whole / 60)} min`;
  if (whole < 36_000) return two(3600, "h", 60, "min");
  if (whole < 172_800) return `${Math.floor(whole / 3600)} h`;
  return `${Math.floor(whole / 86_400)} days`;
}

/** Lets every relative time of the page say what it is by now. */
export function tick() {
  const now = serverNow();
  for (const time of document.querySelectorAll("time[data-tick]")) {
    const text = asMoments ? dated.format(new Date(time.dateTime)) : fromNow(secondsTo(time, now));
    if (time.textContent !== text) time.textContent = text;
  }
}

/** What is waited for is never past. */
function secondsTo(time, now) {
  const seconds = (Date.parse(time.dateTime) - now) / 1000;
  return time.dataset.tick === "until" ? Math.max(0, seconds) : seconds;
}

function fromNow(seconds) {
  if (Math.abs(seconds) < 1) return "now";
  return seconds > 0 ? `in ${age(seconds)}` : `${age(-seconds)} ago`;
}

/** Times turn into moments and back: by their button, and by a click or a tap on any of them that is no link. */
export function turning() {
  const buttons = document.querySelectorAll("[data-times]");
  const show = () => {
    for (const button of buttons) button.setAttribute("aria-pressed", String(asMoments));
    tick();
  };
  for (const button of buttons) button.hidden = false;
  document.addEventListener("click", (event) => {
    const time = event.target.closest("time[data-tick]");
    if (!event.target.closest("[data-times]") && (!time || time.closest("a, button, summary") || !getSelection().isCollapsed)) return;
    asMoments = !asMoments;
    asMoments ? localStorage.setItem(MOMENTS, "1") : localStorage.removeItem(MOMENTS);
    show();
  });
  document.addEventListener("copy", exactly);
  show();
}

/** What is copied has its times in ISO 8601: an age means nothing elsewhere. */
function exactly(event) {
  const selection = getSelection();
  const times = [...document.querySelectorAll("time[datetime]")].filter((time) => selection.containsNode(time, true));
  if (!times.length || event.target.matches?.("input, textarea")) return;
  let text = selection.toString();
  let from = 0;
  for (const time of times) {
    const place = text.indexOf(time.textContent, from);
    if (place < 0) continue;
    text = text.slice(0, place) + time.dateTime + text.slice(place + time.textContent.length);
    from = place + time.dateTime.length;
  }
  event.clipboardData.setData("text/plain", text);
  event.preventDefault();
}
