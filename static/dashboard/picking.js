// Rows of a list are picked for an action: one by one, a stretch with the shift key, or all.

const BOXES = "#rows input[name=id]";

let last;

export function picking() {
  document.querySelector("[data-pick-all]").disabled = false;
  document.addEventListener("click", pick);
  document.addEventListener("change", (event) => {
    if (event.target.matches?.("[data-pick-all]")) for (const box of boxes()) box.checked = event.target.checked;
    show();
  });
  show(); // of rows that were picked before this came, or that the browser remembers
}

const boxes = () => [...document.querySelectorAll(BOXES)];

function pick(event) {
  const box = event.target.closest?.(BOXES);
  if (!box) return;
  const all = boxes();
  if (event.shiftKey && last?.isConnected) {
    const [from, to] = [all.indexOf(last), all.indexOf(box)].sort((one, other) => one - other);
    for (const each of all.slice(from, to + 1)) each.checked = box.checked;
  }
  last = box;
  show();
}

function show() {
  const all = boxes();
  const picked = all.filter((box) => box.checked).length;
  for (const box of all) box.closest("tr").classList.toggle("is-picked", box.checked);
  const ofAll = document.querySelector("[data-pick-all]");
  ofAll.checked = picked === all.length;
  ofAll.indeterminate = picked > 0 && picked < all.length;
  document.querySelector("[data-selected]").textContent = picked ? `${picked} selected` : "With selected jobs";
}
