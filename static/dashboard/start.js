// Fetches what makes a page live once its first frame is drawn: fetching, compiling and running it sooner would only delay
// that frame. A page that nobody has looked at yet needs none of it, and frames of hidden tabs wait until they are seen.

requestAnimationFrame(() => setTimeout(() => import("./main.js")));
