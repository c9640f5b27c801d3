// Makes what is on the page equal to what the server sent, touching only what differs: focus, selection, scroll,
// open folds and half-typed fields stay as they are.

const SCRIPTS_OWN = ["is-drawn", "is-current", "is-picked", "is-fresh", "is-over"];

/** Brings the children of `target` to those of the HTML text `html`. */
export function morph(target, html) {
  const sent = document.createElement("template"); // keeps the white space that a document's parser would drop
  sent.innerHTML = html;
  children(target, sent.content);
}

/** Brings one element to another of the same name. */
export function element(from, to) {
  if (from.isEqualNode(to)) return;
  if (from.matches("[data-keep]") && inUse(from)) return;
  attributes(from, to);
  if (!from.matches("input, textarea, select, [data-own]")) children(from, to); // [data-own]: a script fills it
}

function children(from, to) {
  const named = new Map();
  for (const child of from.children) {
    const key = keyOf(child);
    if (key) named.set(key, child);
  }
  let place = from.firstChild;
  for (const wanted of [...to.childNodes]) {
    const key = keyOf(wanted);
    const found = key ? named.get(key) : ahead(place, wanted);
    if (found) {
      if (found !== place) from.insertBefore(found, place);
      else place = place.nextSibling;
      if (wanted.nodeType === Node.ELEMENT_NODE) element(found, wanted);
      else if (found.data !== wanted.data) found.data = wanted.data;
    } else {
      from.insertBefore(document.adoptNode(wanted), place);
    }
  }
  while (place) {
    const next = place.nextSibling;
    place.remove();
    place = next;
  }
}

/** By attribute: `id` of a form that has a field of that name is the field. */
function keyOf(node) {
  return node.nodeType === Node.ELEMENT_NODE ? node.getAttribute("id") || node.getAttribute("data-key") || "" : "";
}

/** The next nameless node of the same kind, so that what came in between does not shift all that follows. */
function ahead(place, wanted) {
  for (let node = place; node; node = node.nextSibling) {
    if (node.nodeName === wanted.nodeName && !keyOf(node)) return node;
    if (node.nodeType === Node.ELEMENT_NODE && wanted.nodeType !== Node.ELEMENT_NODE) return undefined;
  }
  return undefined;
}

function attributes(from, to) {
  const field = from.matches("input, textarea, select");
  for (const { name, value } of to.attributes) {
    if (skipped(from, name, field)) continue;
    if (name === "class") {
      const kept = SCRIPTS_OWN.filter((word) => from.classList.contains(word));
      const wanted = [value, ...kept].join(" ").trim();
      if (from.getAttribute("class") !== wanted) from.setAttribute("class", wanted);
    } else if (from.getAttribute(name) !== value) {
      from.setAttribute(name, value);
    }
  }
  for (const { name } of [...from.attributes]) {
    if (!to.hasAttribute(name) && !skipped(from, name, field) && name !== "class") from.removeAttribute(name);
  }
}

function skipped(from, name, field) {
  if ("own" in from.dataset) return name !== "class"; // what its script has made of it
  if (name === "open" && from.nodeName === "DETAILS") return true; // the reader's
  if (name === "viewBox" && from.matches("[data-graph]")) return true; // what is seen of a picture: the reader's
  if (name === "hidden" && from.matches("[data-tools]")) return true;
  if (name === "aria-pressed" && from.matches("[data-graph-do]")) return true;
  if (name === "hidden" && from.matches("[data-copy], [data-newer]")) return true; // the script's
  if (name === "value" && from.name === "csrfmiddlewaretoken") return true; // masked anew each time; the old one holds
  return field && (name === "value" || name === "checked") && (from === document.activeElement || edited(from));
}

function edited(field) {
  return field.type === "checkbox" ? field.checked !== field.defaultChecked : field.value !== field.defaultValue;
}

function inUse(part) {
  return part.contains(document.activeElement) || [...part.querySelectorAll("input:not([type=hidden])")].some(edited);
}
