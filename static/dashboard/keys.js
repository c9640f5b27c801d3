// Keyboard shortcuts. Each has a button or a link that does the same; none works inside a field or with a modifier.

import { ask } from "./forms.js";

const OFF = "shortcuts-off";

/** @param {{togglePause: () => void}} commands */
export function keys({ togglePause }) {
  const dialog = document.getElementById("shortcuts");
  const enabled = document.getElementById("shortcuts-on");
  enabled.checked = localStorage.getItem(OFF) === null;
  enabled.addEventListener("change", () => (enabled.checked ? localStorage.removeItem(OFF) : localStorage.setItem(OFF, "1")));
  const help = document.getElementById("help");
  help.hidden = false;
  help.addEventListener("click", () => dialog.showModal());

  let going = 0;
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || dialog.open) return;
    if (event.target.matches("input:not([type=checkbox]), textarea, select, [contenteditable]")) {
      if (event.key === "Escape") event.target.blur();
      return;
    }
    if (!enabled.checked && event.key !== "?") return;
    if (going && Date.now() - going < 1500) {
      going = 0;
      const link = document.querySelector(`.rail [data-go="${CSS.escape(event.key)}"]`);
      if (link) {
        event.preventDefault();
        location.assign(link.href);
        return;
      }
    }
    const command = COMMANDS[event.key];
    if (event.key === "g") going = Date.now();
    else if (event.key === ".") togglePause();
    else if (event.key === "?") dialog.showModal();
    else if (!command || command() === false) return;
    event.preventDefault();
  });
}

const WALKED = ":is(#rows, [data-walk]) > tr";
const rows = () => [...document.querySelectorAll(WALKED)];
const current = () => document.querySelector(`${WALKED}.is-current`);

/**
 * Presses the button of a letter: the one that the current row has, or that the list has for rows in its state, or the
 * only one of the page. A letter is pressed by mistake more easily than a button, so what would be done at once asks.
 */
function press(key) {
  const row = current();
  const buttons = (row ?? document.getElementById("main")).querySelectorAll(`[data-press="${key}"]`);
  const ofList = row?.dataset.state && document.querySelector(`.bulk [data-press="${key}"][data-states~="${row.dataset.state}"]`);
  const button = buttons.length === 1 ? buttons[0] : ofList;
  if (!button || button.disabled || button.ariaDisabled) return false;
  if (button.form?.method === "post") ask(button, button === ofList ? [row.dataset.key] : undefined);
  else button.click();
  return true;
}

function move(by) {
  const all = rows();
  if (!all.length) return false;
  const place = all.indexOf(current());
  const next = all[Math.min(all.length - 1, Math.max(0, place < 0 ? 0 : place + by))];
  current()?.classList.remove("is-current");
  next.classList.add("is-current");
  next.querySelector("[data-open]").focus();
  next.scrollIntoView({ block: "nearest" });
  return true;
}

/** Selects the current row, or with `range` all rows from the one that was selected last; a click knows how. */
function select(range) {
  const box = current()?.querySelector("input[type=checkbox]");
  if (!box) return false;
  box.dispatchEvent(new MouseEvent("click", { bubbles: true, cancelable: true, shiftKey: range }));
  return true;
}

/** Clicks the first such element; false when there is none. */
const click = (selector) => document.querySelector(selector)?.click() ?? document.querySelector(selector) !== null;

function theme() {
  const dark = getComputedStyle(document.documentElement).colorScheme === "dark" || (document.documentElement.dataset.theme === "auto" && matchMedia("(prefers-color-scheme: dark)").matches);
  return click(`[data-theme-form] button[value="${dark ? "light" : "dark"}"]`);
}

const COMMANDS = {
  "/": () => document.getElementById("find").select() ?? document.getElementById("find").focus(),
  j: () => move(1),
  k: () => move(-1),
  c: () => press("c"),
  e: () => press("e"),
  p: () => press("p"),
  r: () => press("r"),
  "[": () => press("["),
  "]": () => press("]"),
  x: () => select(false),
  X: () => select(true),
  "*": () => click("[data-pick-all]"),
  y: () => click("[data-copy-id]"),
  Y: () => click(".command [data-copy], [data-copy-command]"),
  u: () => click(".in-list [data-back]") || click("[data-up]"),
  t: theme,
};
