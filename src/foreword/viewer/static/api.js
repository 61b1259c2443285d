// Send requests to the worker's API; an answer that is an error is thrown with its message and hint.

export class ApiError extends Error {
  constructor(message, hint, status) {
    super(message);
    this.hint = hint;
    this.status = status;
  }
}

export function get(path, query = {}, { signal } = {}) {
  const params = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value !== "" && value !== null && value !== undefined && value !== false)
      params.set(name, value === true ? "1" : value);
  }
  return answer(`${path}${params.size ? `?${params}` : ""}`, { signal });
}

// `changes` tells whether it may have been done though nobody answers: a trial or a dry run changes nothing.
export function post(path, body, { signal, changes = true } = {}) {
  const headers = { "Content-Type": "application/json" };
  return answer(path, { method: "POST", headers, body: JSON.stringify(body), signal }, { changes });
}

export const BACK =
  "It goes on by itself when it is back. If its command has ended, run `foreword view` again, and open the link that it prints.";

async function answer(address, how, { changes = false } = {}) {
  let got;
  let data;
  try {
    got = await fetch(address, { credentials: "same-origin", redirect: "error", ...how });
    data = await got.json();
  } catch (error) {
    if (error.name === "AbortError") throw error;
    const words = changes ? "The viewer does not answer: look whether this was done." : "The viewer does not answer.";
    throw new ApiError(words, BACK, 0);
  }
  // 502: the viewer found no worker, and the next question may start one.
  if (!got.ok) throw new ApiError(data.error, data.hint, got.status === 502 ? 0 : got.status);
  return data;
}

const WAIT = 2_000;
const LONGEST = 30_000; // milliseconds
export const pause = (tries) => Math.min(LONGEST, WAIT * 2 ** tries);

// What got no answer is asked for again by itself, ever more seldom, until its page is left or has an answer.
export function patient(signal) {
  let tries = 0;
  let timer = 0;
  const answered = () => {
    clearTimeout(timer);
    tries = 0;
  };
  const failed = (error, again) => {
    clearTimeout(timer);
    if (error.status === 0 && !signal.aborted) timer = setTimeout(again, pause(tries++));
  };
  signal.addEventListener("abort", () => clearTimeout(timer));
  return { answered, failed };
}

// Of questions that come faster than their answers only the latest counts: the one before it is given up.
export function latest() {
  let before = null;
  return async (ask) => {
    before?.abort();
    const mine = new AbortController();
    before = mine;
    try {
      const data = await ask(mine.signal);
      return mine.signal.aborted ? null : data;
    } catch (error) {
      if (error.name === "AbortError") return null;
      throw error;
    }
  };
}
