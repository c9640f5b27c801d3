// The page of a run: its picture, and links that change only the panel.

import { pictures } from "../jobs/workflow_graph.js";

const panel = document.getElementById("panel");

/** Shows the same page with another query, without loading it anew: what is scrolled and zoomed stays. */
function go(url) {
  const fragment = new URL(panel.dataset.fragment, location.href);
  const id = fragment.searchParams.get("id");
  fragment.search = url.search;
  fragment.searchParams.set("id", id);
  panel.dataset.fragment = fragment.pathname + fragment.search;
  document.dispatchEvent(new Event("panel:refresh"));
}

document.addEventListener("click", (event) => {
  if (event.defaultPrevented || event.button || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
  const link = event.target.closest("#panel a[data-soft]");
  if (!link) return;
  const url = new URL(link.getAttribute("href"), location.href);
  if (url.pathname !== location.pathname) return;
  event.preventDefault();
  history.pushState(null, "", url);
  go(url);
});

addEventListener("popstate", () => go(new URL(location.href)));

pictures();
new MutationObserver(() => pictures()).observe(panel, { childList: true, subtree: true });
