// A few lines about a job below its row, without leaving the list. Without this script the link shows the same.

/** Opens the peek of the row whose link was followed, or closes it. */
export async function peek(link) {
  const row = link.closest("tr");
  const open = row.nextElementSibling?.matches("tr.peek") ? row.nextElementSibling : null;
  close();
  link.setAttribute("aria-expanded", String(!open));
  if (open) return;
  try {
    const response = await fetch(link.dataset.peek, { headers: { Accept: "text/html" } });
    if (!response.ok) throw new Error(String(response.status));
    const sent = new DOMParser().parseFromString(`<table><tbody>${await response.text()}</tbody></table>`, "text/html");
    close(); // one that was opened meanwhile
    row.after(document.adoptNode(sent.querySelector("tr")));
  } catch {
    location.assign(link.href);
  }
}

function close() {
  for (const other of document.querySelectorAll("#rows tr.peek")) other.remove();
}
