// Shows, while a schedule is typed, when it would fire. The server computes it, from the very form that it would save:
// nothing here knows what an expression means. Without this script the button "Preview" shows the same.

const REST_MS = 250; // of the keyboard, before the server is asked
const OF_KIND = { cron: ["cron"], interval: ["interval_seconds"], once: ["run_at"] };
const NOT_ASKED = new Set(["csrfmiddlewaretoken", "payload"]); // a payload may be long, and is none of the log's business

const region = document.getElementById("schedule-preview");
const form = region.closest("form");
const shown = region.querySelector("[data-shown]");
const spoken = region.querySelector("[role=status]");
const row = (name) => form.querySelector(`.form-row.field-${name}`);

let timer;
let asking;
let touched = false;

/** Only the fields of the chosen kind are on the page; the others keep what was typed. */
function showKind() {
  const kind = form.elements.kind?.value;
  for (const [of, names] of Object.entries(OF_KIND)) {
    for (const name of names) row(name)?.toggleAttribute("hidden", of !== kind);
  }
}

function askSoon() {
  touched = true;
  clearTimeout(timer);
  timer = setTimeout(ask, REST_MS);
}

async function ask() {
  asking?.abort();
  asking = new AbortController();
  const url = new URL(region.dataset.url, location); // it names the row that is edited
  for (const [name, value] of new FormData(form)) if (!NOT_ASKED.has(name)) url.searchParams.append(name, value);
  try {
    const response = await fetch(url, { headers: { Accept: "application/json" }, signal: asking.signal });
    if (!response.ok) return say(response.status === 403 ? "You may no longer see this." : "The preview could not be had.");
    show(await response.json());
  } catch (error) {
    if (error.name !== "AbortError") say("The server did not answer: the preview is as it was.");
  }
}

function show({ html, said, errors, signature }) {
  shown.innerHTML = html; // made by a template of ours, which escapes what was typed
  say(said);
  // What a refused save said stays until something is typed.
  for (const name of touched ? region.dataset.fields.split(" ") : []) mark(name, errors[name] ?? []);
  const place = document.getElementById("payload-signature");
  if (place && place.textContent !== signature) place.textContent = signature;
}

/** Puts what is wrong at its field, in the place and form in which a refused save shows it. */
function mark(name, messages) {
  const place = row(name);
  if (!place) return;
  const known = [...place.querySelectorAll(".errorlist li")].map((item) => item.textContent);
  if (known.length === messages.length && known.every((text, number) => text === messages[number])) return;
  for (const list of place.querySelectorAll(".errorlist")) list.remove();
  place.classList.toggle("errors", messages.length > 0);
  for (const field of place.querySelectorAll("input, select, textarea")) field.toggleAttribute("aria-invalid", messages.length > 0);
  if (!messages.length) return;
  const list = document.createElement("ul");
  list.className = "errorlist";
  list.id = `id_${name}_error`;
  for (const message of messages) list.append(Object.assign(document.createElement("li"), { textContent: message }));
  place.prepend(list);
}

/** Said politely, and only when it is something else than before. */
function say(words) {
  if (spoken.textContent !== words) spoken.textContent = words;
}

form.elements.viewer_zone.value = Intl.DateTimeFormat().resolvedOptions().timeZone ?? "";
region.querySelector(".submit").hidden = true;
form.addEventListener("input", askSoon);
form.addEventListener("change", () => {
  showKind();
  askSoon();
});
for (const element of form.querySelectorAll(".datetimeshortcuts")) element.addEventListener("click", askSoon);
showKind();
ask();
