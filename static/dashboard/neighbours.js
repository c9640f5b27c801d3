// From job to job of the list that the reader came from, and back to it. Only the tab itself remembers the list.

import { icon } from "./forms.js";

const KEPT = "list";

/** On a list: remembers it when one of its jobs is opened. On the page of a job: shows its place in that list. */
export function lists() {
  const place = document.querySelector(".in-list");
  if (place) show(place);
  else document.addEventListener("click", (event) => event.target.closest?.("#rows [data-open]") && remember());
}

function remember() {
  const jobs = [...document.querySelectorAll("#rows > .is-row [data-open]")].map((link) => link.pathname);
  sessionStorage.setItem(KEPT, JSON.stringify({ back: location.pathname + location.search, jobs }));
}

function show(place) {
  const { back, jobs } = JSON.parse(sessionStorage.getItem(KEPT) ?? '{"jobs": []}');
  const at = jobs.indexOf(location.pathname);
  if (at < 0) return;
  const words = document.createElement("a");
  Object.assign(words, { href: back, textContent: `${at + 1} of ${jobs.length}`, title: "Back to the list" });
  words.dataset.back = "";
  place.replaceChildren(neighbour(jobs[at - 1], "left", "[", "Previous job"), words, neighbour(jobs[at + 1], "right", "]", "Next job"));
  place.hidden = false;
}

/** A way to another job; at the end of the list the room that it would take. */
function neighbour(address, shape, key, says) {
  const made = document.createElement(address ? "a" : "span");
  made.className = "icon-button";
  if (!address) return made;
  made.href = address;
  made.dataset.press = key;
  const words = document.createElement("span");
  words.className = "unseen";
  words.textContent = says;
  made.append(icon(shape), words);
  return made;
}
