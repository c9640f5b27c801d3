// Actions without leaving the page. Every form works without this; here it is sent in the background, its button says
// what is under way, and nothing is shown as done before the server says so.

/** A shape of the file of icons; those that the server writes stand in the page. */
export function icon(name) {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("class", "icon");
  svg.setAttribute("aria-hidden", "true");
  const use = document.createElementNS("http://www.w3.org/2000/svg", "use");
  use.setAttribute("href", `${document.body.dataset.icons}#${name}`);
  svg.append(use);
  return svg;
}

/** One sentence above the page, read out politely. Replaces the one before. */
export function say(text, ok) {
  const line = document.createElement("p");
  line.className = `banner is-${ok ? "succeeded" : "dead"}`;
  const words = document.createElement("span");
  words.textContent = text;
  line.append(icon(ok ? "succeeded" : "dead"), words);
  document.getElementById("messages").replaceChildren(line);
}

async function post(url, data) {
  const response = await fetch(url, { method: "POST", body: data, headers: { Accept: "application/json" }, redirect: "error" });
  if (response.status === 204) return { ok: true };
  const body = response.headers.get("Content-Type")?.startsWith("application/json") ? await response.json() : {};
  return { ok: response.ok, message: body.error?.message ?? `The server answered ${response.status}.`, ...body };
}

/** @param {() => Promise<void>} refresh fetches the panel anew */
export function forms(refresh) {
  document.addEventListener("submit", (event) => {
    const form = event.target;
    const button = event.submitter;
    if (form.matches("[data-theme-form]")) {
      event.preventDefault();
      theme(form, button);
    } else if (form.dataset.act || button?.dataset.act) {
      event.preventDefault();
      act(form, button, button?.dataset.act || form.dataset.act, refresh);
    }
  });
  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-copy]");
    if (button) copy(button);
  });
}

const ASKED_FROM = 101; // so many at one press are asked for first; the server sees to it too

/** Leads to the question that comes before a button's action; `ids`: instead of those that its form would send. */
export function ask(button, ids) {
  const form = button.form;
  const data = new FormData(form, button);
  if (ids) {
    data.delete("id");
    for (const id of ids) data.append("id", id);
  }
  if (!data.has("id")) return say("Select at least one job first.", false);
  data.set("ask", "1");
  const question = document.createElement("form");
  Object.assign(question, { method: "post", hidden: true });
  question.setAttribute("action", button.getAttribute("formaction") || form.getAttribute("action"));
  for (const [name, value] of data) question.append(Object.assign(document.createElement("input"), { name, value }));
  document.body.append(question);
  question.submit();
  question.remove();
}

async function act(form, button, doing, refresh) {
  if (button.getAttribute("aria-busy")) return; // a double click is one click
  const data = new FormData(form, button);
  if (!data.has("id")) return say("Select at least one job first.", false);
  if (data.getAll("id").length >= ASKED_FROM) return ask(button);
  const label = button.textContent;
  button.setAttribute("aria-busy", "true");
  button.textContent = doing;
  try {
    const answer = await post(button.getAttribute("formaction") || form.getAttribute("action"), data);
    if (answer.goto) return location.assign(answer.goto);
    say(answer.message, answer.ok);
    for (const box of form.querySelectorAll("input[name=id][type=checkbox]:checked")) box.checked = false;
    form.dispatchEvent(new Event("change", { bubbles: true }));
  } catch {
    say("The server did not answer. It is not known whether this was done.", false);
  }
  button.removeAttribute("aria-busy");
  button.textContent = label;
  await refresh();
}

async function theme(form, button) {
  document.documentElement.dataset.theme = button.value;
  for (const each of document.querySelectorAll("[data-theme-form] button")) each.setAttribute("aria-pressed", String(each.value === button.value));
  await post(form.getAttribute("action"), new FormData(form, button)).catch(() => undefined);
}

/** Copies, and says so on the button. */
export async function copy(button) {
  try {
    await navigator.clipboard.writeText(button.dataset.copy);
  } catch {
    const area = document.createElement("textarea"); // without a secure context there is no clipboard
    area.value = button.dataset.copy;
    area.className = "unseen";
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
    button.focus();
  }
  if (button.classList.contains("done")) return; // it says so still
  button.classList.add("done");
  const words = button.querySelector(".unseen");
  const label = words?.textContent;
  if (words) words.textContent = "Copied";
  setTimeout(() => {
    button.classList.remove("done");
    if (words) words.textContent = label;
  }, 1500);
}
