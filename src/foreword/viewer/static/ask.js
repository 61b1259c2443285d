// A question -> what the worker answers, as JSON; what went wrong in its own words.

export class Told extends Error {
  constructor(message, hint, status) {
    super(message);
    this.hint = hint;
    this.status = status;
  }
}

export function get(path, query = {}, { signal } = {}) {
  const said = new URLSearchParams();
  for (const [name, given] of Object.entries(query)) {
    if (given !== "" && given !== null && given !== undefined && given !== false)
      said.set(name, given === true ? "1" : given);
  }
  return answer(`${path}${said.size ? `?${said}` : ""}`, { signal });
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
  let told;
  try {
    got = await fetch(address, { credentials: "same-origin", redirect: "error", ...how });
    told = await got.json();
  } catch (error) {
    if (error.name === "AbortError") throw error;
    const words = changes ? "The viewer does not answer: look whether this was done." : "The viewer does not answer.";
    throw new Told(words, BACK, 0);
  }
  // 502: the viewer found no worker, and the next question may start one.
  if (!got.ok) throw new Told(told.error, told.hint, got.status === 502 ? 0 : got.status);
  return told;
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
      const told = await ask(mine.signal);
      return mine.signal.aborted ? null : told;
    } catch (error) {
      if (error.name === "AbortError") return null;
      throw error;
    }
  };
}
