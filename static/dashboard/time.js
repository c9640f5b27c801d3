// Moments and ages, by the server's clock and in the reader's zone.

const AHEAD_MATTERS_MS = 3_000; // less may be the way from the server to here

let serverAhead = 0;
let format;

/** Sets the server's clock by a moment that it has just told, and the zone that the page is written in. */
export function setClock(at, zone) {
  if (at) serverAhead = Date.parse(at) - Date.now();
  if (zone && !format) format = clockOf(zone);
  for (const line of document.querySelectorAll("[data-skew]")) {
    const wrong = Math.abs(serverAhead) > AHEAD_MATTERS_MS;
    line.hidden = !wrong;
    const text = wrong ? `This device’s clock is ${age(Math.abs(serverAhead) / 1000)} ${serverAhead > 0 ? "behind" : "ahead"}. Ages here go by the server’s.` : "";
    if (line.textContent !== text) line.textContent = text;
  }
}

function clockOf(zone) {
  const options = { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" };
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
    const seconds = (Date.parse(time.dateTime) - now) / 1000;
    const text = Math.abs(seconds) < 1 ? "now" : seconds > 0 ? `in ${age(seconds)}` : `${age(-seconds)} ago`;
    if (time.textContent !== text) time.textContent = text;
  }
}
