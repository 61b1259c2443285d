// Pass OpenCode's events to Foreword's worker, and its context into OpenCode's requests. No dependencies.
//
// `foreword install opencode` wrote this file, and `foreword uninstall opencode` removes it.
// Memory must never break the agent: nothing here throws, writes to the terminal, or waits beyond its deadline.
// Where the worker is away, late or broken, the hook takes over: it spools, answers and starts a worker.

import { spawn, spawnSync } from "node:child_process";
import { request } from "node:http";
import process from "node:process";

const SOCKET = __SOCKET__;
const HOOK = __HOOK__;

const PROMPT_MS = Number(process.env.FOREWORD_DEADLINE_PROMPT_MS) || 300; // as in the settings
const START_MS = Number(process.env.FOREWORD_DEADLINE_START_MS) || 1000;
const WORKER_SHARE = 0.6; // of a deadline; the rest is for the hook
const HOOK_MS = 5000; // after which a hook is ended
const FLUSH_MS = 1500; // that the end of OpenCode waits for the queue
const QUEUE_EVENTS = 500; // the worker takes some milliseconds for one
const QUEUE_BYTES = 32 << 20;
const MAX_BODY = 1 << 20; // bytes; longer payloads are cut by the hook, which knows where that is safe
const MAX_DATA_URL = 1024; // characters
const MAP_SIZE = 1000; // sessions, messages and calls
const MAX_PROBLEMS = 20; // reported by one process
const OUR_TEXT = /<foreword_context\b|\[foreword\] /;
const HINT = /\n\n\[foreword, history\] [^\n]*$/;
// Prompts of hidden agents, for an OpenCode that does not list its agents.
const HIDDEN_PROMPT =
  /^\s*(You are a (title generator|context summarization agent|helpful AI assistant tasked with summar)|Summarize )/;
const CAPTURED_EVENTS = ["session.idle", "session.compacted", "session.deleted"];
// Tools whose result may get a hint; the others do not wait for one.
const TOOLS_WITH_HINTS = ["bash", "edit", "write", "multiedit", "patch", "apply_patch"];

export const Foreword = async ({ client, directory }) => {
  if (!["", "0", undefined].includes(process.env.FOREWORD_OFF)) return {};
  const sessions = new Map(); // id -> {parent, start}
  const summaries = new Map(); // ids of messages that a compaction writes
  const failed = new Map(); // ids of calls whose failure was reported
  const queue = createQueue();
  let hiddenAgents; // OpenCode's agents, some of which the user never sees

  const sessionOf = (id) => sessions.get(id) ?? remember(sessions, id, {});

  // A session with a parent is a sub-agent's: it is neither captured nor gets context.
  const isSubagent = async (id) => {
    const session = sessionOf(id);
    session.parent ??= untilDeadline(
      readData(() => client.session.get({ path: { id } })).then((session) => session?.parentID ?? ""),
      PROMPT_MS,
    );
    return Boolean(await session.parent.get());
  };

  // The context of every request of a session: requested once, the same bytes from then on.
  const startSession = (id, event, payload) => {
    const session = sessionOf(id);
    session.start ??= untilDeadline(requestContext(event, payload, START_MS), START_MS);
    return session.start;
  };
  const startContext = (id, model) =>
    startSession(id, "experimental.chat.system.transform", {
      directory,
      source: "resume",
      input: { sessionID: id, model },
    });

  // OpenCode's own agents for titles and summaries get no description of the folder.
  const isHidden = async (system) => {
    if (system.includes("<env>")) return false;
    hiddenAgents ??= readData(() => client.app.agents());
    const agents = (await waitFor(hiddenAgents, PROMPT_MS)) ?? [];
    const prompts = agents.filter((agent) => agent.hidden && agent.prompt).map((agent) => agent.prompt.trim());
    return HIDDEN_PROMPT.test(system) || prompts.some((prompt) => system.trimStart().startsWith(prompt));
  };

  const capture = (event, id, payload) => queue.add(createCall(event, payload), () => isSubagent(id));
  const handleEvent = async ({ event }) => {
    const properties = event.properties ?? {};
    const { info = {}, part = {} } = properties;
    const id = properties.sessionID ?? info.id ?? part.sessionID;
    if (event.type === "session.created") {
      sessionOf(info.id).parent = untilDeadline(Promise.resolve(info.parentID ?? ""), PROMPT_MS);
      if (!info.parentID) startSession(info.id, "session.created", { directory, input: event });
    } else if (event.type === "message.updated") {
      if (info.summary === true || info.mode === "compaction") remember(summaries, info.id, true);
    } else if (event.type === "message.part.updated") {
      if (part.type !== "tool" || part.state?.status !== "error" || failed.has(part.callID)) return;
      remember(failed, part.callID, true);
      capture("tool.execute.error", id, { directory, input: event });
    } else if (CAPTURED_EVENTS.includes(event.type)) {
      capture(event.type, id, { directory, input: event });
    }
  };

  open.add(queue);
  return catchErrors({
    event: handleEvent,
    "chat.message": async (input, output) => {
      const { sessionID } = input;
      if (output.parts.some(isOurs) || (await isSubagent(sessionID))) return; // another copy of this file was first
      // First the context of the session start: that of the prompt does not repeat it.
      await startContext(sessionID, input.model ?? output.message.model).get();
      const text = await waitFor(requestContext("chat.message", { directory, input, output }, PROMPT_MS), PROMPT_MS);
      if (text) output.parts.push(createPart(output, sessionID, text));
    },
    "experimental.chat.system.transform": async (input, output) => {
      const { system } = output;
      if (!input.sessionID || system.slice(1).some((text) => OUR_TEXT.test(text))) return;
      if ((await isHidden(system[0] ?? "")) || (await isSubagent(input.sessionID))) return;
      const text = await startContext(input.sessionID, { modelID: input.model?.id }).get();
      if (text) system.push(text);
    },
    "experimental.session.compacting": async (input, output) => {
      if (output.context.some((text) => OUR_TEXT.test(text)) || (await isSubagent(input.sessionID))) return;
      const text = await waitFor(
        requestContext("experimental.session.compacting", { directory, input }, START_MS),
        START_MS,
      );
      if (text) output.context.push(text);
    },
    "tool.execute.after": async (input, output) => {
      const isText = typeof output.output === "string"; // not of MCP tools
      if (isText && HINT.test(output.output)) return; // another copy of this file was first
      const answer = capture("tool.execute.after", input.sessionID, { directory, input, output });
      if (!isText || !TOOLS_WITH_HINTS.includes(input.tool)) return;
      const text = await waitFor(answer, PROMPT_MS);
      if (text) output.output = `${output.output.trimEnd()}\n\n${text}`;
    },
    "experimental.text.complete": async (input, output) => {
      if (summaries.has(input.messageID)) return; // a summary is not an answer
      capture("experimental.text.complete", input.sessionID, { directory, input, output });
    },
    dispose: async () => {
      await waitFor(queue.empty(), FLUSH_MS);
      queue.rescue();
      open.delete(queue);
    },
  });
};

// -- waiting ----------------------------------------------------------------------------------------------------------

// Return the data of an answer of OpenCode; undefined where it fails.
const readData = async (request) => {
  try {
    return (await request())?.data;
  } catch {
    return undefined;
  }
};

// Return the result, or undefined after *ms*; the promise goes on.
const waitFor = (promise, ms) =>
  new Promise((resolve) => {
    // Read what arrived while OpenCode was busy before giving up.
    const timer = setTimeout(() => setImmediate(resolve), Math.max(0, ms));
    Promise.resolve(promise).then(
      (value) => {
        clearTimeout(timer);
        resolve(value);
      },
      () => {
        clearTimeout(timer);
        resolve();
      },
    );
  });

// All callers of `get` share one deadline; a result that comes later is returned to later callers.
const untilDeadline = (promise, ms) => {
  const until = Date.now() + ms;
  let value;
  promise.then((result) => (value = result));
  return { get: async () => value ?? (await waitFor(promise, until - Date.now())) };
};

// Wrap hooks so that they never throw; `foreword doctor` shows what failed.
const catchErrors = (hooks) =>
  Object.fromEntries(
    Object.entries(hooks).map(([name, hook]) => [
      name,
      async (...args) => {
        try {
          await hook(...args);
        } catch (error) {
          reportProblem(`${name}: ${error}`);
        }
      },
    ]),
  );

const reported = new Set();
const reportProblem = (what) => {
  if (reported.has(what) || reported.size >= MAX_PROBLEMS) return;
  reported.add(what);
  runHook({ event: "trouble", at: timestamp(), body: Buffer.alloc(0) }, `OpenCode's plugin: ${what}`).catch(() => {});
};

const remember = (map, key, value) => {
  if (map.size >= MAP_SIZE) map.delete(map.keys().next().value);
  map.set(key, value);
  return value;
};

// -- the queue of captured events, in order ---------------------------------------------------------------------------

const open = new Set(); // queues of this process
process.once("exit", () => {
  for (const queue of open) queue.rescue();
});

const createQueue = () => {
  const waiting = [];
  let bytes = 0;
  let turn = Promise.resolve();
  const sendNext = async () => {
    const first = waiting[0];
    if (!first) return;
    first.inner = await first.isSubagent();
    if (!first.inner) first.answer(await send(first, PROMPT_MS, () => first.answer("")));
    first.answer("");
    if (waiting[0] === first) bytes -= waiting.shift().body.length; // else it was rescued meanwhile
  };
  // Queue a call with the payload as it is now, because other plugins may change it. Resolve to the worker's context, or
  // to nothing as soon as no worker answers.
  const add = (call, isSubagent) => {
    if (waiting.length >= QUEUE_EVENTS || bytes + call.body.length > QUEUE_BYTES)
      return reportProblem("too many events waited, and some were not kept");
    bytes += call.body.length;
    const answer = new Promise((answer) => waiting.push({ ...call, isSubagent, answer }));
    turn = turn.then(sendNext).catch((error) => reportProblem(`${call.event}: ${error}`));
    return answer;
  };
  return {
    add,
    empty: () => turn,
    // OpenCode exits: spool what still waits, for a second at most. The last hook may take longer: ending it would lose
    // its event.
    rescue: () => {
      const until = Date.now() + 1000;
      const left = waiting.splice(0).filter((each) => !each.inner && !each.handed);
      bytes = 0;
      for (const each of left) {
        if (Date.now() > until) return;
        spawnSync(HOOK, hookArguments(each, ""), {
          input: each.body,
          env: hookEnvironment(),
          stdio: "pipe",
          timeout: HOOK_MS,
        });
      }
    },
  };
};

// -- the worker, and the hook when it is away -------------------------------------------------------------------------

const requestContext = (event, payload, ms) => send(createCall(event, payload), ms);

const createCall = (event, payload) => ({ event, at: timestamp(), body: Buffer.from(redact(secretValues(), payload)) });

// Return the context, "" where there is none. It never rejects, and may take longer than *ms*; *away* is called when no
// worker answers.
const send = async (call, ms, away = () => {}) => {
  try {
    let why;
    if (call.body.length <= MAX_BODY)
      try {
        return parseContext(await post(call, ms * WORKER_SHARE));
      } catch (error) {
        const nobody = ["ENOENT", "ECONNREFUSED", "FailedToOpenSocket"].includes(error.code); // as Bun calls it, too
        why = nobody ? undefined : `${error.message}`;
      }
    away();
    return parseContext(await runHook(call, why));
  } catch (error) {
    reportProblem(`${call.event}: ${error.message}`);
    return "";
  }
};

const parseContext = (text) => {
  const { context } = text ? JSON.parse(text) : {};
  return typeof context === "string" ? context : "";
};

const post = ({ event, at, body }, ms) =>
  new Promise((resolve, reject) => {
    const path = `/api/hook?host=opencode&event=${event}&at=${at}&head=-1&total=${body.length}`;
    const headers = { Host: "foreword", "Content-Length": body.length, Connection: "close" };
    const req = request({ socketPath: SOCKET, path, method: "POST", headers, agent: false }, (answer) => {
      const parts = [];
      answer.on("data", (part) => parts.push(part));
      answer.on("error", end);
      answer.on("end", () => {
        const text = Buffer.concat(parts).toString();
        const whole = String(Buffer.byteLength(text)) === answer.headers["content-length"];
        if (answer.statusCode === 200 && whole && (!text || /^\{.*\}$/s.test(text))) end(null, text);
        else end(new Error(`the worker answered ${answer.statusCode} ${text.slice(0, 80)}`));
      });
    });
    const timer = setTimeout(() => setImmediate(() => end(new Error("the worker was late"))), ms);
    const end = (error, text) => {
      clearTimeout(timer);
      error ? reject(error) : resolve(text);
      req.destroy();
    };
    req.on("error", end);
    req.end(body);
  });

// Run the hook with the payload on its stdin; *why* says how the worker failed before.
const runHook = (call, why) =>
  new Promise((resolve, reject) => {
    const child = spawn(HOOK, hookArguments(call, why), { env: hookEnvironment(), stdio: ["pipe", "pipe", "ignore"] });
    const parts = [];
    const timer = setTimeout(() => child.kill("SIGKILL"), HOOK_MS);
    child.on("error", (error) => {
      clearTimeout(timer);
      reject(error);
    });
    child.stdin.on("error", () => {}); // a hook may end before it read everything
    child.stdout.on("data", (part) => parts.push(part));
    child.on("close", () => {
      clearTimeout(timer);
      resolve(Buffer.concat(parts).toString());
    });
    child.stdin.end(call.body, (error) => {
      call.handed = !error; // the hook has all of it, and outlives OpenCode
    });
  });

const hookArguments = ({ event, at }, why) => [
  "--host",
  "opencode",
  ...(why === undefined ? [] : ["--asked", `${at} ${why.replace(/\s+/g, " ").slice(0, 300)}`]),
  event,
];

// The agent's environment holds its tokens; a hook needs none of them.
const hookEnvironment = () =>
  Object.fromEntries(
    Object.entries(process.env).filter(
      ([name]) => ["PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "USER"].includes(name) || name.startsWith("FOREWORD_"),
    ),
  );

// Seconds; no two calls get the same.
let lastMoment = 0;
const timestamp = () => {
  lastMoment = Math.max(Date.now() * 1000, lastMoment + 1);
  return (lastMoment / 1e6).toFixed(6);
};

// -- parts of a request -----------------------------------------------------------------------------------------------

const isOurs = (part) => part.type === "text" && part.synthetic && OUR_TEXT.test(part.text);

// Create a part behind the user's; OpenCode sorts parts by their ids.
const createPart = ({ message, parts }, sessionID, text) => {
  const last = parts
    .map((part) => /^prt_([0-9a-f]{12})/.exec(part.id)?.[1] ?? "")
    .concat(((Date.now() * 4096) % 2 ** 48).toString(16).padStart(12, "0"))
    .sort()
    .at(-1);
  const next = (parseInt(last, 16) + 1).toString(16).padStart(12, "0").slice(-12);
  const LETTERS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
  const rest = Array.from({ length: 14 }, () => LETTERS[Math.floor(Math.random() * 62)]).join("");
  return { id: `prt_${next}${rest}`, sessionID, messageID: message.id, type: "text", text, synthetic: true };
};

// -- redaction --------------------------------------------------------------------------------------------------------

// Values of secret variables, by the same rule as `secret_values` in hook/client.py.
const secretValues = () => {
  const { PWD = "", HOME = "", PATH = "" } = process.env;
  const usual = `${PWD}\n${HOME}\n${PATH}`;
  const found = [];
  for (const [name, raw] of Object.entries(process.env)) {
    let value = raw ?? "";
    const size = Buffer.byteLength(value);
    if (size < 8 || size > 4096) continue;
    let sure = name.includes("PASS");
    if (!sure && value.includes("://") && value.includes("@")) {
      const address = value.slice(value.indexOf("://") + 3);
      const user = address.slice(0, Math.max(0, address.lastIndexOf("@")));
      value = user.includes(":") ? user.slice(user.indexOf(":") + 1) : "";
      sure = true;
    } else if (!sure && !/TOKEN|KEY|SECRET|CRED|AUTH/.test(name)) continue;
    const bare = value.replace(/[-_./:@]/g, "");
    const isWord = /^[A-Za-z]+$/.test(bare);
    if (/^[0-9]+$/.test(bare) || (isWord && bare.length < 20) || /^[/~.]/.test(value)) continue;
    if (value.includes("://") || usual.includes(value) || !/^[\t-\r ]*[^\t-\r ]+[\t-\r ]*$/.test(value)) continue;
    if (Buffer.byteLength(value) < (sure ? 8 : 12)) continue;
    if (!isWord && !/[0-9]/.test(bare) && !sure) continue;
    found.push(value);
  }
  return found.sort((left, right) => right.length - left.length);
};

// Return JSON without the secrets, also inside a JSON text, and without pictures.
const redact = (values, payload) => {
  const held = values.flatMap((value) => [...new Set([JSON.stringify(value).slice(1, -1), value])]);
  const clean = (text) => {
    if (text.startsWith("data:") && text.length > MAX_DATA_URL) return "data:[left out]";
    return held.reduce((rest, each) => rest.replaceAll(each, "[redacted:env]"), text);
  };
  const walk = (item) => {
    if (typeof item === "string") return clean(item);
    if (Array.isArray(item)) return item.map(walk);
    if (item === null || typeof item !== "object") return item;
    return Object.fromEntries(Object.entries(item).map(([name, each]) => [clean(name), walk(each)]));
  };
  return JSON.stringify(walk(payload));
};
