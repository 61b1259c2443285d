// The page "Memories": being written.

import { empty } from "./parts.js";
import { make } from "./dom.js";

export const title = "Memories";

export async function show(root) {
  root.append(make("h1", {}, title), empty("This page comes next."));
}
