// The page "Now": being written.

import { empty } from "./parts.js";
import { make } from "./dom.js";

export const title = "Now";

export async function show(root) {
  root.append(make("h1", {}, title), empty("This page comes next."));
}
