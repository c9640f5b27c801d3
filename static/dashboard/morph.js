// Makes what is on the page equal to what the server sent, touching only what differs: focus, selection, scroll,
// open folds and half-typed fields stay as they are.

const SCRIPTS_OWN = ["is-current", "is-picked", "is-fresh", "is-over"];

/** Brings the children of `target` to those of the HTML text `html`. */
export function morph(target, html) {
  const parsed = new DOMParser().parseFromString(html, "text/html");
  children(target, parsed.body);
}

/** Brings one element to another of the same name. */
export function element(from, to) {
  if (from.isEqualNode(to)) return;
  if (from.matches("[data-keep]") && inUse(from)) return;
  attributes(from, to);
  if (!from.matches("input, textarea, select")) children(from, to);
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
    let found = key ? named.get(key) : place;
    if (!key && found && keyOf(found) && [...to.children].some((child) => keyOf(child) === keyOf(found))) found = undefined;
    if (found && sameKind(found, wanted)) {
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

function keyOf(node) {
  return node.nodeType === Node.ELEMENT_NODE ? node.id || node.dataset?.key || "" : "";
}

function sameKind(one, other) {
  return one.nodeType === other.nodeType && one.nodeName === other.nodeName;
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
  if (name === "open" && from.nodeName === "DETAILS") return true; // the reader's
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
