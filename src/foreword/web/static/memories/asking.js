// What is chosen -> what the worker answers: a page of the memories that fit, how many there are of each sort, what waits.

import { get } from "../ask.js";
import { words } from "./choice.js";

export const memories = (choice, { limit, after = "", signal }) => get("/api/memories", { ...words(choice), limit, after }, { signal });

export const counts = (choice, { signal }) => get("/api/facets", words(choice), { signal });

export const waiting = (choice, { limit, signal }) => get("/api/review", { project: choice.project, limit }, { signal });

export const one = (id, { signal }) => get(`/api/memories/${encodeURIComponent(id)}`, {}, { signal });

// Those of the same project that may take a memory's place.
export function successors(memory, q, { signal }) {
  const project = memory.scope.startsWith("project:") ? memory.project : "";
  return get("/api/memories", { q, limit: 8, status: "active", project }, { signal });
}
