// The page's one line to the server: figures over a WebSocket, by polling where sockets are blocked.
// It knows nothing of the page; it reports figures and how the line stands, and closes itself in hidden tabs.

const POLL_MS = 5_000;
const SILENCE_MS = 15_000; // the server says something every 5 s; longer silence is a dead line
const FAILURES_BEFORE_POLLING = 3;
const LONGEST_WAIT_MS = 15_000;

export class Live {
  /**
   * @param {{socketUrl: string, snapshotUrl: string, onFigures: (frame: object) => void, onStatus: (status: object) => void}} options
   */
  constructor({ socketUrl, snapshotUrl, onFigures, onStatus }) {
    this.socketUrl = new URL(socketUrl, location.href);
    this.socketUrl.protocol = location.protocol === "https:" ? "wss:" : "ws:";
    this.snapshotUrl = snapshotUrl;
    this.onFigures = onFigures;
    this.onStatus = onStatus;
    this.version = "";
    this.failures = 0;
    this.over = false;
    this.silent = undefined; // since when nothing answers, HTTP included
    document.addEventListener("visibilitychange", () => (document.hidden ? this.rest() : this.resume()));
    addEventListener("pagehide", () => this.rest());
    addEventListener("pageshow", (event) => event.persisted && this.resume());
    addEventListener("online", () => this.now());
  }

  start() {
    if (!document.hidden) this.connect();
  }

  /** Tries again at once. */
  now() {
    if (!this.over && !this.open) this.connect();
  }

  rest() {
    clearTimeout(this.timer);
    clearTimeout(this.silence);
    clearInterval(this.polling);
    this.polling = undefined;
    this.drop();
  }

  resume() {
    if (this.over || document.hidden) return;
    this.failures = 0;
    this.connect();
  }

  drop() {
    const socket = this.socket;
    this.socket = undefined;
    this.open = false;
    if (!socket) return;
    socket.onopen = socket.onmessage = socket.onclose = null;
    // One that is not open yet is closed once it is: before that, a browser takes it for an error.
    if (socket.readyState === WebSocket.CONNECTING) socket.onopen = () => socket.close();
    else socket.close();
  }

  connect() {
    clearTimeout(this.timer);
    this.drop();
    const socket = new WebSocket(this.socketUrl);
    this.socket = socket;
    socket.onopen = () => {
      this.open = true;
      this.failures = 0;
      clearInterval(this.polling);
      this.polling = undefined;
      this.heard();
    };
    socket.onmessage = (event) => this.take(JSON.parse(event.data));
    socket.onclose = (event) => this.lost(event.code);
    this.expect(); // also that it opens: a browser would wait minutes for a server that takes the line and says nothing
  }

  take(frame) {
    this.heard();
    if (frame.type === "beat") {
      if (frame.version && frame.version !== this.version) this.fetchAll();
    } else if (frame.type === "changes" && frame.since !== this.version) {
      this.fetchAll(); // a gap: what was missed is fetched whole
      return;
    } else {
      this.version = frame.version;
      this.onFigures(frame);
    }
    this.onStatus({ kind: "live", at: frame.at });
  }

  heard() {
    this.heardAt = Date.now();
    this.silent = undefined;
    this.expect();
  }

  /** Something must be said on this line, within so long. */
  expect() {
    clearTimeout(this.silence);
    this.silence = setTimeout(() => this.lost(0), SILENCE_MS);
  }

  async lost(code) {
    clearTimeout(this.silence);
    this.drop();
    if (this.over || document.hidden) return;
    this.failures += 1;
    if (code === 4403 || this.failures === 2) await this.fetchAll(); // says whether we may still read at all
    if (this.over || this.socket) return; // tried again meanwhile
    if (this.failures >= FAILURES_BEFORE_POLLING && !this.polling) {
      this.polling = setInterval(() => this.fetchAll(), POLL_MS);
    }
    const longest = Math.min(LONGEST_WAIT_MS, 500 * 2 ** this.failures);
    const wait = longest * (0.5 + Math.random() / 2);
    const kind = this.polling && this.silent === undefined ? "polling" : "reconnecting";
    this.onStatus({ kind, tries: this.failures, at: this.at, next: Date.now() + wait, silent: this.silent });
    this.timer = setTimeout(() => this.connect(), wait);
  }

  /** All figures by HTTP. Ends the following when the server says that we may not read. */
  async fetchAll() {
    let response;
    try {
      response = await fetch(this.snapshotUrl, { headers: { Accept: "application/json" }, signal: AbortSignal.timeout(10_000) });
    } catch {
      this.silent ??= this.heardAt ?? Date.now();
      return;
    }
    if (response.status === 401 || response.status === 403) {
      this.over = true;
      this.rest();
      this.onStatus({ kind: response.status === 401 ? "signed-out" : "not-allowed" });
      return;
    }
    if (!response.ok) {
      this.silent ??= this.heardAt ?? Date.now();
      return;
    }
    this.silent = undefined;
    const frame = await response.json();
    this.version = frame.version;
    this.at = frame.at;
    this.onFigures(frame);
    if (this.polling) this.onStatus({ kind: "polling", at: frame.at });
  }
}
