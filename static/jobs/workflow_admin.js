// The picture of a workflow in the admin can be moved and zoomed. Without this script it scrolls in its box.

import { pictures } from "./workflow_graph.js";

document.documentElement.classList.add("has-script");
pictures();
