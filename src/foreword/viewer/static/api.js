// Send requests to the API of the worker; an error response is thrown with its message and hint.

export class ApiError extends Error {
  constructor(message, hint, status) {
    super(message);
    this.hint = hint;
    this.status = status; // 0: no answer
  }
}

export const RECOVERY =
  "The page continues when the viewer is back. If its command has ended, run `foreword view` again and open the link that it prints.";

export function get(path, query = {}, { signal } = {}) {
  const params = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value !== "" && value !== null && value !== undefined && value !== false)
      params.set(name, value === true ? "1" : value);
  }
  return request(`${path}${params.size ? `?${params}` : ""}`, { signal });
}

// Pass `changes: false` for a request that changes nothing: then an unanswered one need not be looked up.
export function post(path, body, { signal, changes = true } = {}) {
  const headers = { "Content-Type": "application/json" };
  return request(path, { method: "POST", headers, body: JSON.stringify(body), signal }, changes);
}

async function request(address, options, changes = false) {
  let response;
  let data;
  try {
    response = await fetch(address, { credentials: "same-origin", redirect: "error", ...options });
    data = await response.json();
  } catch (error) {
    if (error.name === "AbortError") throw error;
    const hint = changes ? "The viewer does not answer: check whether this was done." : "The viewer does not answer.";
    throw new ApiError(hint, RECOVERY, 0);
  }
  // 502: the viewer found no worker, and the next request may start one.
  if (!response.ok) throw new ApiError(data.error, data.hint, response.status === 502 ? 0 : response.status);
  return data;
}

const FIRST_PAUSE = 2_000;
const LONGEST_PAUSE = 30_000; // milliseconds
export const pauseBefore = (retries) => Math.min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** retries);

// Retry what got no answer, ever more seldom, until it succeeds or `signal` is aborted.
export function retrier(signal) {
  let retries = 0;
  let timer = 0;
  const succeeded = () => {
    clearTimeout(timer);
    retries = 0;
  };
  const failed = (error, retry) => {
    clearTimeout(timer);
    if (error.status === 0 && !signal.aborted) timer = setTimeout(retry, pauseBefore(retries++));
  };
  signal.addEventListener("abort", () => clearTimeout(timer));
  return { succeeded, failed };
}

// Return a function that runs one request at a time: a later request aborts the one before, which returns null.
export function latestOnly() {
  let running = null;
  return async (send) => {
    running?.abort();
    const controller = new AbortController();
    running = controller;
    try {
      const data = await send(controller.signal);
      return controller.signal.aborted ? null : data;
    } catch (error) {
      if (error.name === "AbortError") return null;
      throw error;
    }
  };
}
