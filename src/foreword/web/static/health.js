// The page "Health": being written.

import { empty } from "./parts.js";
import { make } from "./dom.js";

export const title = "Health";

export async function show(root) {
  root.append(make("h1", {}, title), empty("This page comes next."));
}
