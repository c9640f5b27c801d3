// Fetches what makes a page live once its first frame is drawn: fetching, compiling and running it sooner would only delay
// that frame. A page that nobody has looked at yet needs none of it, and frames of hidden tabs wait until they are seen.

// What cannot be fetched (a web process that is just replaced) is asked for again; `fetched` in main.js does the same. A script
// that both import would be fetched before the first frame, and names with hashes allow no circle.

const AGAIN_MS = 3000;

function start() {
  import("./main.js").catch((error) => {
    if (!/import/i.test(error.message)) throw error; // it came, and is wrong
    setTimeout(start, AGAIN_MS);
  });
}

requestAnimationFrame(() => setTimeout(start));
