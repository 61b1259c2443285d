// What is chosen -> what the worker answers: a page of the memories that fit, how many there are of each sort, what waits.

import { get } from "../ask.js";
import { words } from "./choice.js";

export const memories = (choice, { limit, after = "", signal }) =>
  get("/api/memories", { ...words(choice), limit, after }, { signal });

export const counts = (choice, { signal }) => get("/api/facets", words(choice), { signal });

export const waiting = (choice, { limit, signal }) =>
  get("/api/review", { project: choice.project, limit }, { signal });

export const one = (id, { signal }) => get(`/api/memories/${encodeURIComponent(id)}`, { full: true }, { signal });

// Those that may take a memory's place: of the same project, or where it holds in more than one, of the same scope.
export function successors(memory, q, { signal }) {
  const within = memory.scope.startsWith("project:") ? { project: memory.project } : { scope: memory.scope };
  return get("/api/memories", { q, limit: 8, status: "active", ...within }, { signal });
}
