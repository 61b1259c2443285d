// What OpenCode tells a plugin -> Foreword's worker; what the worker answers -> OpenCode's requests. No dependencies.
//
// `foreword install opencode` wrote this file, and `foreword uninstall opencode` takes it away.
// Memory must never break the agent: nothing here throws, writes to the terminal, or waits beyond its deadline.
// Where the worker is away, late or talks nonsense, the hook takes over: it spools, answers and starts a worker.

import { spawn, spawnSync } from "node:child_process";
import { request } from "node:http";
import process from "node:process";

const SOCKET = __SOCKET__;
const HOOK = __HOOK__;

const PROMPT = Number(process.env.FOREWORD_DEADLINE_PROMPT_MS) || 300; // ms; as the settings have them
const START = Number(process.env.FOREWORD_DEADLINE_START_MS) || 1000;
const SHARE = 0.6; // of a deadline is the worker's, the rest is for who stands in for it
const LONGEST = 5000; // ms that a hook may live; beyond it, it hangs
const FLUSH = 1500; // ms that the end of the host waits for what it was not told to wait for
const WAITING = 500; // events that may wait; a tool's use takes the worker some milliseconds
const WAITING_BYTES = 32 << 20;
const BIG = 1 << 20; // bytes; longer payloads are cut by the hook, which knows where that is safe
const PICTURE = 1024; // characters of a data: URL that is no text
const REMEMBERED = 1000; // sessions, messages and calls
const TRACES = 20; // of one process
const OURS = /<foreword_context\b|\[foreword\] /;
const HINT = /\n\n\[foreword, history\] [^\n]*$/;
// Where OpenCode cannot be asked which of its agents are hidden.
const HIDDEN =
  /^\s*(You are a (title generator|context summarization agent|helpful AI assistant tasked with summar)|Summarize )/;
const CAPTURED = ["session.idle", "session.compacted", "session.deleted"];
// Tools behind whose result a hint may stand; nobody waits for what we know of the others.
const HINTED = ["bash", "edit", "write", "multiedit", "patch", "apply_patch"];

export const Foreword = async ({ client, directory }) => {
  if (!["", "0", undefined].includes(process.env.FOREWORD_OFF)) return {};
  const sessions = new Map(); // id -> {parent, start}; what is known of each
  const summaries = new Map(); // ids of messages that a compaction writes
  const failed = new Map(); // ids of calls whose failure was reported
  const queue = captures();
  let hidden; // OpenCode's agents, some of which the user never sees

  const known = (id) => sessions.get(id) ?? remember(sessions, id, {});

  // A session with a parent is a sub-agent's: it is neither captured nor answered.
  const isInner = async (id) => {
    const session = known(id);
    session.parent ??= awaited(
      dataOf(() => client.session.get({ path: { id } })).then((got) => got?.parentID ?? ""),
      PROMPT,
    );
    return Boolean(await session.parent.got());
  };

  // What stands in every request of a session: asked for once, and the same bytes from then on.
  const begin = (id, event, payload) => {
    const session = known(id);
    session.start ??= awaited(ask(event, payload, START), START);
    return session.start;
  };
  const started = (id, model) =>
    begin(id, "experimental.chat.system.transform", { directory, source: "resume", input: { sessionID: id, model } });

  // Titles and summaries are written by agents of OpenCode's own, which are told nothing of the folder.
  const isHidden = async (system) => {
    if (system.includes("<env>")) return false;
    hidden ??= dataOf(() => client.app.agents());
    const agents = (await within(hidden, PROMPT)) ?? [];
    const prompts = agents.filter((agent) => agent.hidden && agent.prompt).map((agent) => agent.prompt.trim());
    return HIDDEN.test(system) || prompts.some((prompt) => system.trimStart().startsWith(prompt));
  };

  const capture = (event, id, payload) => queue.add(entry(event, payload), () => isInner(id));
  const saw = async ({ event }) => {
    const properties = event.properties ?? {};
    const { info = {}, part = {} } = properties;
    const id = properties.sessionID ?? info.id ?? part.sessionID;
    if (event.type === "session.created") {
      known(info.id).parent = awaited(Promise.resolve(info.parentID ?? ""), PROMPT);
      if (!info.parentID) begin(info.id, "session.created", { directory, input: event });
    } else if (event.type === "message.updated") {
      if (info.summary === true || info.mode === "compaction") remember(summaries, info.id, true);
    } else if (event.type === "message.part.updated") {
      if (part.type !== "tool" || part.state?.status !== "error" || failed.has(part.callID)) return;
      remember(failed, part.callID, true);
      capture("tool.execute.error", id, { directory, input: event });
    } else if (CAPTURED.includes(event.type)) {
      capture(event.type, id, { directory, input: event });
    }
  };

  open.add(queue);
  return quietly({
    event: saw,
    "chat.message": async (input, output) => {
      const { sessionID } = input;
      if (output.parts.some(isOurs) || (await isInner(sessionID))) return; // a second copy of this file finds ours
      // What a session begins with comes first: the prompt's own must not say it again.
      await started(sessionID, input.model ?? output.message.model).got();
      const text = await within(ask("chat.message", { directory, input, output }, PROMPT), PROMPT);
      if (text) output.parts.push(beside(output, sessionID, text));
    },
    "experimental.chat.system.transform": async (input, output) => {
      const { system } = output;
      if (!input.sessionID || system.slice(1).some((text) => OURS.test(text))) return;
      if ((await isHidden(system[0] ?? "")) || (await isInner(input.sessionID))) return;
      const text = await started(input.sessionID, { modelID: input.model?.id }).got();
      if (text) system.push(text);
    },
    "experimental.session.compacting": async (input, output) => {
      if (output.context.some((text) => OURS.test(text)) || (await isInner(input.sessionID))) return;
      const text = await within(ask("experimental.session.compacting", { directory, input }, START), START);
      if (text) output.context.push(text);
    },
    "tool.execute.after": async (input, output) => {
      const isText = typeof output.output === "string"; // not of MCP tools
      if (isText && HINT.test(output.output)) return; // another copy of this file was first
      const answered = capture("tool.execute.after", input.sessionID, { directory, input, output });
      if (!isText || !HINTED.includes(input.tool)) return;
      const text = await within(answered, PROMPT);
      if (text) output.output = `${output.output.trimEnd()}\n\n${text}`;
    },
    "experimental.text.complete": async (input, output) => {
      if (summaries.has(input.messageID)) return; // what a compaction wrote, nobody said
      capture("experimental.text.complete", input.sessionID, { directory, input, output });
    },
    dispose: async () => {
      await within(queue.empty(), FLUSH);
      queue.rescue();
      open.delete(queue);
    },
  });
};

// -- what is awaited, and for how long --------------------------------------------------------------------------------

// What OpenCode itself tells; undefined where it does not.
const dataOf = async (question) => {
  try {
    return (await question())?.data;
  } catch {
    return undefined;
  }
};

// What it comes to, or undefined when the time is over; it goes on all the same.
const within = (promise, ms) =>
  new Promise((resolve) => {
    // What arrived while the host was busy is read before we give up.
    const timer = setTimeout(() => setImmediate(resolve), Math.max(0, ms));
    Promise.resolve(promise).then(
      (got) => {
        clearTimeout(timer);
        resolve(got);
      },
      () => {
        clearTimeout(timer);
        resolve();
      },
    );
  });

// Something that whoever needs it waits for until one deadline, and that comes late rather than never.
const awaited = (promise, ms) => {
  const until = Date.now() + ms;
  let known;
  promise.then((got) => (known = got));
  return { got: async () => known ?? (await within(promise, until - Date.now())) };
};

// Hooks that never throw, and leave a trace where `foreword doctor` finds it.
const quietly = (hooks) =>
  Object.fromEntries(
    Object.entries(hooks).map(([name, hook]) => [
      name,
      async (...args) => {
        try {
          await hook(...args);
        } catch (error) {
          trace(`${name}: ${error}`);
        }
      },
    ]),
  );

const traced = new Set();
const trace = (what) => {
  if (traced.has(what) || traced.size >= TRACES) return;
  traced.add(what);
  launch({ event: "trouble", at: moment(), body: Buffer.alloc(0) }, `OpenCode's plugin: ${what}`).catch(() => {});
};

const remember = (map, key, value) => {
  if (map.size >= REMEMBERED) map.delete(map.keys().next().value);
  map.set(key, value);
  return value;
};

// -- what is captured: not awaited by anybody, but in order -----------------------------------------------------------

const open = new Set(); // queues of this process
process.once("exit", () => {
  for (const queue of open) queue.rescue();
});

const captures = () => {
  const waiting = [];
  let bytes = 0;
  let turn = Promise.resolve();
  const one = async () => {
    const first = waiting[0];
    if (!first) return;
    first.inner = await first.isInner();
    if (!first.inner) first.answer(await send(first, PROMPT, () => first.answer("")));
    first.answer("");
    if (waiting[0] === first) bytes -= waiting.shift().body.length; // else it was rescued meanwhile
  };
  // The payload as it is now, for other plugins may change it; whose it is may take a while to know. Comes to what the
  // worker answers, and to nothing as soon as there is none.
  const add = (taken, isInner) => {
    if (waiting.length >= WAITING || bytes + taken.body.length > WAITING_BYTES)
      return trace("too many events waited, and some were not kept");
    bytes += taken.body.length;
    const answered = new Promise((answer) => waiting.push({ ...taken, isInner, answer }));
    turn = turn.then(one).catch((error) => trace(`${taken.event}: ${error}`));
    return answered;
  };
  return {
    add,
    empty: () => turn,
    // The host ends now: what still waits is spooled. The host is held up for a second, and until the hook that was
    // started last has ended: to end it early would lose its event.
    rescue: () => {
      const until = Date.now() + 1000;
      const left = waiting.splice(0).filter((each) => !each.inner && !each.handed);
      bytes = 0;
      for (const each of left) {
        if (Date.now() > until) return;
        spawnSync(HOOK, words(each, ""), { input: each.body, env: environ(), stdio: "pipe", timeout: LONGEST });
      }
    },
  };
};

// -- the worker, and who stands in for it -----------------------------------------------------------------------------

const ask = (event, payload, ms) => send(entry(event, payload), ms);

const entry = (event, payload) => ({ event, at: moment(), body: Buffer.from(without(secrets(), payload)) });

// The context that comes back; nothing where there is none. It never rejects, and may take longer than *ms*; *away* is
// called where no worker answers.
const send = async (call, ms, away = () => {}) => {
  try {
    let why;
    if (call.body.length <= BIG)
      try {
        return contextOf(await post(call, ms * SHARE));
      } catch (error) {
        const nobody = ["ENOENT", "ECONNREFUSED", "FailedToOpenSocket"].includes(error.code); // as Bun calls it, too
        why = nobody ? undefined : `${error.message}`;
      }
    away();
    return contextOf(await launch(call, why));
  } catch (error) {
    trace(`${call.event}: ${error.message}`);
    return "";
  }
};

const contextOf = (text) => {
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

// The hook, with the payload on its stdin; *why* tells it that the worker was asked already, and what came of it.
const launch = (call, why) =>
  new Promise((resolve, reject) => {
    const child = spawn(HOOK, words(call, why), { env: environ(), stdio: ["pipe", "pipe", "ignore"] });
    const parts = [];
    const timer = setTimeout(() => child.kill("SIGKILL"), LONGEST);
    child.on("error", (error) => {
      clearTimeout(timer);
      reject(error);
    });
    child.stdin.on("error", () => {}); // a hook that ends early has what it needs
    child.stdout.on("data", (part) => parts.push(part));
    child.on("close", () => {
      clearTimeout(timer);
      resolve(Buffer.concat(parts).toString());
    });
    child.stdin.end(call.body, (error) => {
      call.handed = !error; // then the hook has all of it, and outlives the host
    });
  });

const words = ({ event, at }, why) => [
  "--host",
  "opencode",
  ...(why === undefined ? [] : ["--asked", `${at} ${why.replace(/\s+/g, " ").slice(0, 300)}`]),
  event,
];

// The agent's environment holds its tokens; a hook needs none of them.
const environ = () =>
  Object.fromEntries(
    Object.entries(process.env).filter(
      ([name]) => ["PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "USER"].includes(name) || name.startsWith("FOREWORD_"),
    ),
  );

// Seconds; no two calls have the same.
let lastly = 0;
const moment = () => {
  lastly = Math.max(Date.now() * 1000, lastly + 1);
  return (lastly / 1e6).toFixed(6);
};

// -- what is said in a request ----------------------------------------------------------------------------------------

const isOurs = (part) => part.type === "text" && part.synthetic && OURS.test(part.text);

// A part behind the user's own; ids ascend, and OpenCode sorts by them.
const beside = ({ message, parts }, sessionID, text) => {
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

// What the environment holds under a name that tells; the rule is the hook's, `secret_values` in hook/client.py.
const secrets = () => {
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
  return found.sort((one, other) => other.length - one.length);
};

// JSON without what is secret, as it is or inside a JSON text, and without pictures.
const without = (values, payload) => {
  const held = values.flatMap((value) => [...new Set([JSON.stringify(value).slice(1, -1), value])]);
  const cleaned = (text) => {
    if (text.startsWith("data:") && text.length > PICTURE) return "data:[left out]";
    return held.reduce((rest, each) => rest.replaceAll(each, "[redacted:env]"), text);
  };
  const walked = (item) => {
    if (typeof item === "string") return cleaned(item);
    if (Array.isArray(item)) return item.map(walked);
    if (item === null || typeof item !== "object") return item;
    return Object.fromEntries(Object.entries(item).map(([name, each]) => [cleaned(name), walked(each)]));
  };
  return JSON.stringify(walked(payload));
};
