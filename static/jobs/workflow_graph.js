// Moves and zooms pictures of workflows. The server draws them; here only the part that is seen changes (the viewBox),
// by dragging, pinching, Ctrl + wheel, buttons and keys, and by following what runs.

const CLOSEST = 2;
const READABLE = 0.55; // below this scale words cannot be read: a large picture opens on a part instead
const STEP = 1.3;
const RUNS = ".box.is-leased, .box.is-retry_wait";

/** Every picture in `root`, each in its box `[data-picture]`. */
export function pictures(root = document) {
  for (const frame of root.querySelectorAll("[data-picture]")) if (!frame.view) frame.view = new View(frame);
}

class View {
  constructor(frame) {
    this.frame = frame;
    this.place = `picture ${location.pathname}`;
    this.pointers = new Map();
    const tools = frame.parentElement.querySelector("[data-tools]");
    if (tools) tools.hidden = false;
    tools?.addEventListener("click", (event) => this.does(event.target.closest("[data-graph-do]")));
    frame.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    frame.addEventListener("pointerdown", (event) => this.down(event));
    frame.addEventListener("pointermove", (event) => this.move(event));
    for (const end of ["pointerup", "pointercancel"]) frame.addEventListener(end, (event) => this.up(event));
    frame.addEventListener("click", (event) => this.dragged && event.preventDefault(), true);
    frame.addEventListener("dragstart", (event) => event.preventDefault());
    frame.addEventListener("keydown", (event) => this.key(event));
    frame.addEventListener("focusin", (event) => event.target.matches(".box:focus-visible") && this.show([event.target]));
    new ResizeObserver(() => this.resized()).observe(frame);
    new MutationObserver(() => this.changed()).observe(frame, { subtree: true, childList: true, attributes: true, attributeFilter: ["class", "data-width"] });
  }

  /** A page that opens where the picture is hidden, as on a phone, has no room to measure before it is turned. */
  resized() {
    if (!this.frame.clientWidth) return;
    if (!this.scale) return this.open();
    if (this.whole) this.fit();
    this.apply();
  }

  get svg() {
    return this.frame.querySelector("[data-graph]");
  }

  get size() {
    return { width: Number(this.svg.getAttribute("width")), height: Number(this.svg.getAttribute("height")) };
  }

  get room() {
    const { clientWidth: width, clientHeight: height } = this.svg;
    return { width: width || 1, height: height || 1 };
  }

  /** As it was left; else whole, or the part of a large one that matters. */
  open() {
    const kept = JSON.parse(sessionStorage.getItem(this.place) ?? "null");
    this.fit();
    if (kept?.of === this.size.width && !kept.whole) Object.assign(this, { x: kept.x, y: kept.y, scale: kept.scale });
    else if (!kept?.whole && this.scale < READABLE) {
      this.scale = READABLE;
      this.show([...this.frame.querySelectorAll(".box.is-chosen"), ...this.frame.querySelectorAll(RUNS), ...this.frame.querySelectorAll(".box.is-dead"), this.frame.querySelector(".box")].slice(0, 1), true);
    }
    this.apply();
  }

  fit() {
    Object.assign(this, this.fitting);
  }

  /** How all of it is seen, in the middle of what room there is. */
  get fitting() {
    const { size, room } = this;
    const scale = Math.min(1, room.width / size.width, room.height / size.height);
    return { scale, x: (size.width - room.width / scale) / 2, y: (size.height - room.height / scale) / 2 };
  }

  apply() {
    const { room, fitting } = this;
    this.whole = ["scale", "x", "y"].every((name) => Math.abs(this[name] - fitting[name]) < 0.01);  // and stays so in another room
    this.svg.setAttribute("viewBox", `${this.x} ${this.y} ${room.width / this.scale} ${room.height / this.scale}`);
    clearTimeout(this.keeping);
    this.keeping = setTimeout(() => sessionStorage.setItem(this.place, JSON.stringify({ x: this.x, y: this.y, scale: this.scale, whole: this.whole, of: this.size.width })), 300);
  }

  zoom(factor, at = { x: this.room.width / 2, y: this.room.height / 2 }) {
    const { size, room } = this;
    const widest = Math.min(1, room.width / size.width, room.height / size.height);
    const scale = Math.min(CLOSEST, Math.max(widest / STEP, this.scale * factor));
    this.x += at.x / this.scale - at.x / scale;
    this.y += at.y / this.scale - at.y / scale;
    this.scale = scale;
    this.apply();
  }

  /** Moves just so far that the boxes are seen; `centred`: into the middle. */
  show(boxes, centred = false) {
    const shapes = boxes.filter(Boolean).map((box) => box.querySelector(".card"));
    if (!shapes.length) return;
    const sides = shapes.map((shape) => ["x", "y"].map((name) => Number(shape.getAttribute(name))));
    const [left, top] = [0, 1].map((axis) => Math.min(...sides.map((side) => side[axis])) - 24);
    const [right, bottom] = [Math.max(...sides.map(([x]) => x)) + 200, Math.max(...sides.map(([, y]) => y)) + 68];
    if (centred && (right - left > this.room.width / this.scale || bottom - top > this.room.height / this.scale)) {
      this.scale = Math.max(0.1, Math.min(this.scale, this.room.width / (right - left), this.room.height / (bottom - top)));
    }
    const [width, height] = [this.room.width / this.scale, this.room.height / this.scale];
    if (centred || left < this.x || right > this.x + width) this.x = (left + right - width) / 2;
    if (centred || top < this.y || bottom > this.y + height) this.y = (top + bottom - height) / 2;
    this.apply();
  }

  does(button) {
    switch (button?.dataset.graphDo) {
      case "in": return this.zoom(STEP);
      case "out": return this.zoom(1 / STEP);
      case "fit": this.fit(); return this.apply();
      case "follow":
        this.following = !this.following;
        button.setAttribute("aria-pressed", String(this.following));
        return this.follow();
    }
  }

  follow() {
    const running = [...this.frame.querySelectorAll(RUNS)];
    if (this.following && running.length && !this.pointers.size) this.show(running, true);
  }

  /** The page has coloured the boxes anew, or nodes were added. */
  changed() {
    if (!this.scale) return;
    if (this.drawn !== undefined && this.drawn !== this.size.width) this.fit();
    this.drawn = this.size.width;
    this.apply();
    this.follow();
  }

  wheel(event) {
    if (!event.ctrlKey && !event.metaKey) return; // the page scrolls
    event.preventDefault();
    this.zoom(Math.exp(-event.deltaY / 300), this.inside(event));
  }

  inside(event) {
    const box = this.svg.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  }

  down(event) {
    if (event.button) return;
    this.pointers.set(event.pointerId, this.inside(event));
    this.dragged = false;
  }

  move(event) {
    const before = this.pointers.get(event.pointerId);
    if (!before) return;
    const now = this.inside(event);
    if (!this.dragged && Math.hypot(now.x - before.x, now.y - before.y) < 4) return;
    if (!this.dragged) this.frame.setPointerCapture(event.pointerId);
    this.dragged = true;
    const other = [...this.pointers].find(([id]) => id !== event.pointerId)?.[1];
    this.x -= (now.x - before.x) / this.scale / (other ? 2 : 1);
    this.y -= (now.y - before.y) / this.scale / (other ? 2 : 1);
    this.pointers.set(event.pointerId, now);
    if (other) this.zoom(Math.hypot(now.x - other.x, now.y - other.y) / Math.max(1, Math.hypot(before.x - other.x, before.y - other.y)), other);
    else this.apply();
  }

  up(event) {
    this.pointers.delete(event.pointerId);
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const box = event.target.closest(".box");
    const actions = {
      "+": () => this.zoom(STEP),
      "-": () => this.zoom(1 / STEP),
      0: () => { this.fit(); this.apply(); },
      ArrowRight: () => this.step(box, 1, 0),
      ArrowLeft: () => this.step(box, -1, 0),
      ArrowDown: () => this.step(box, 0, 1),
      ArrowUp: () => this.step(box, 0, -1),
    };
    if (!actions[event.key]) return;
    event.preventDefault();
    actions[event.key]();
  }

  /** Along an edge to the next box, or to the box above or below; without a box the picture moves. */
  step(box, right, down) {
    if (!box) {
      this.x += (right * 80) / this.scale;
      this.y += (down * 80) / this.scale;
      return this.apply();
    }
    const [here, there] = right > 0 ? ["from", "to"] : ["to", "from"];
    const card = (each) => each.querySelector(".card");
    const at = (each, name) => Number(card(each).getAttribute(name));
    const boxes = [...this.frame.querySelectorAll(".box")];
    const near = right
      ? [...this.svg.querySelectorAll(`[data-${here}="${CSS.escape(box.dataset.box)}"]`)].map((line) => boxes.find((each) => each.dataset.box === line.dataset[there]))
      : boxes.filter((each) => at(each, "x") === at(box, "x") && (at(each, "y") - at(box, "y")) * down > 0);
    const distance = (each) => Math.abs(at(each, "y") - at(box, "y"));
    near.filter(Boolean).sort((one, other) => distance(one) - distance(other))[0]?.focus();
  }
}
