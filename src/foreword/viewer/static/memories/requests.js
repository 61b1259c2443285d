// Request memories, facets and what waits for the user, by what is chosen on the page.

import { get } from "../api.js";
import { words } from "./choice.js";

export const memories = (choice, { limit, after = "", signal }) =>
  get("/api/memories", { ...words(choice), limit, after }, { signal });

export const counts = (choice, { signal }) => get("/api/facets", words(choice), { signal });

export const waiting = (choice, { limit, signal }) =>
  get("/api/review", { project: choice.project, limit }, { signal });

export const one = (id, { signal }) => get(`/api/memories/${encodeURIComponent(id)}`, { full: true }, { signal });
