// The process of an npm plugin: `execute FOLDER` runs one agent, `serve FOLDER` answers calls.
// In a run stdout is the agent's log: everything that an adapter prints itself goes to stderr.

import fs from "node:fs";
import net from "node:net";
import path from "node:path";
import { children, matched, tap } from "./node_hook.mjs";
import { describe, loadAdapter } from "./node_load.mjs";

const IDLE_MS = 120_000;
const LINGER_MS = 5_000;
const SUMMARY_PROBE = 120;
const KEPT_CHARACTERS = 1024 * 1024;

const [mode, folder] = process.argv.slice(2);

function writeAll(fd, bytes) {
  let at = 0;
  while (at < bytes.length) {
    try {
      at += fs.writeSync(fd, bytes, at);
    } catch (problem) {
      if (problem.code !== "EAGAIN") throw problem;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 2);
    }
  }
}

function told(problem) {
  return problem instanceof Error ? problem.message || problem.name : String(problem);
}



function masker(request) {
  const name = /(key|token|secret|password|passwd|authorization|cookie)/i;
  const found = Object.entries(process.env).filter(([key]) => name.test(key)).map(([, v]) => v);
  const secrets = [...found, request.authToken, ...(request.secrets ?? [])]
    .filter((value) => typeof value === "string" && Buffer.byteLength(value) >= 8)
    .sort((a, b) => b.length - a.length);
  const mask = (value) => {
    if (typeof value === "string") {
      return secrets.reduce((text, s) => text.split(s).join("*".repeat(s.length)), value);
    }
    if (Array.isArray(value)) return value.map(mask);
    if (value && typeof value === "object") {
      return Object.fromEntries(Object.entries(value).map(([k, v]) => [mask(k), mask(v)]));
    }
    return value;
  };
  return mask;
}

function plain(value) {
  return value === undefined ? null : JSON.parse(JSON.stringify(value));
}

function keeper(directory, mask) {
  return (name, value) => {
    const part = path.join(directory, `${name}.part`);
    const fd = fs.openSync(part, "w", 0o600);
    fs.writeFileSync(fd, JSON.stringify(mask(plain(value))));
    fs.fsyncSync(fd);
    fs.closeSync(fd);
    fs.renameSync(part, path.join(directory, name));
  };
}

class Printed {
  constructor() {
    this.tail = "";
  }
  note(stream, bytes) {
    if (stream !== 1) return;
    this.tail += bytes.toString("utf8");
    // Cut rarely: a child may print a few bytes at a time.
    if (this.tail.length > 2 * KEPT_CHARACTERS) this.tail = this.tail.slice(-KEPT_CHARACTERS);
  }
  has(text) {
    const probe = text.trim().split("\n")[0].slice(0, SUMMARY_PROBE).trim();
    const escaped = JSON.stringify(probe).slice(1, -1);
    return this.tail.includes(probe) || this.tail.includes(escaped);
  }
}

function signalChildren(signal) {
  for (const child of children) {
    if (child.gone) continue;
    try {
      process.kill(child.detached ? -child.process.pid : child.process.pid, signal);
    } catch {
      child.gone = true;
    }
  }
}

function context({ secrets, ...request }, keep, printed) {
  const cwd = request.config.cwd;
  const write = (stream, bytes) => {
    printed.note(stream, bytes);
    writeAll(stream, bytes);
  };
  tap.write = write;
  tap.on = true;
  return {
    ...request,
    agent: { ...request.agent, adapterConfig: request.config },
    context: {
      paperclipWorkspace: { cwd, source: "project_primary" },
      ...request.context,
    },
    onLog: async (stream, chunk) => {
      const text = typeof chunk === "string" ? chunk : String(chunk);
      if (text && !matched(text)) write(stream === "stderr" ? 2 : 1, Buffer.from(text));
    },
    onMeta: async (meta) => keep("invocation.json", meta),
    onSpawn: async (info) => keep("spawn.json", info),
    onEvent: async () => {},
    onRuntimeProgress: async () => {},
  };
}

async function outcome(request, keep, printed) {
  const { adapter } = await loadAdapter(folder);
  if (typeof adapter.execute !== "function") throw new Error("the adapter has no execute()");
  const codec = adapter.sessionCodec;
  const runtime = { ...request.runtime };
  if (codec && typeof codec.deserialize === "function" && runtime.sessionParams) {
    runtime.sessionParams = codec.deserialize(runtime.sessionParams);
  }
  const result = await adapter.execute(context({ ...request, runtime }, keep, printed));
  const params = result && typeof result === "object" ? result.sessionParams : null;
  let session = null;
  let displayId = null;
  if (params && codec && typeof codec.serialize === "function") session = codec.serialize(params);
  if (params && codec && typeof codec.getDisplayId === "function") {
    displayId = codec.getDisplayId(session ?? params);
  }
  return { result, session, displayId };
}

async function execute() {
  const directory = process.env.BINDERCLIP_ATTEMPT_DIR;
  delete process.env.BINDERCLIP_ATTEMPT_DIR;
  const request = JSON.parse(fs.readFileSync(0, "utf8"));
  const keep = keeper(directory, masker(request));
  const printed = new Printed();
  let over = false;
  const finish = (answer) => {
    if (over) return;
    over = true;
    const summary = answer.result?.summary;
    if (typeof summary === "string" && summary.trim() && !printed.has(summary)) {
      writeAll(1, Buffer.from(`${summary.trimEnd()}\n`));
    }
    try {
      keep("answer.json", { ...answer, unmatched: tap.unmatched });
    } catch (problem) {
      keep("answer.json", { thrown: `the result is no JSON: ${told(problem)}` });
    }
    process.exit(0);
  };
  let stopping = false;
  process.on("SIGTERM", () => {
    if (stopping) return;
    stopping = true;
    signalChildren("SIGTERM");
    setTimeout(() => signalChildren("SIGKILL"), LINGER_MS - 1_000);
    setTimeout(() => finish({ thrown: "stopped by a signal before its end" }), LINGER_MS);
  });
  process.on("uncaughtException", (problem) => {
    console.error(problem);
    finish({ thrown: told(problem) });
  });
  process.on("unhandledRejection", (problem) => console.error(problem));
  // A promise that never settles lets the event loop run dry.
  process.on("beforeExit", () => finish({ thrown: "execute() ended without a result" }));
  try {
    finish(await outcome(request, keep, printed));
  } catch (problem) {
    console.error(problem);
    finish({ thrown: told(problem) });
  }
}



async function withEnv(env, work) {
  const before = { ...process.env };
  Object.assign(process.env, env ?? {});
  try {
    return await work();
  } finally {
    for (const name of Object.keys(process.env)) if (!(name in before)) delete process.env[name];
    Object.assign(process.env, before);
  }
}

let loaded;
async function adapter() {
  loaded ??= loadAdapter(folder);
  try {
    return (await loaded).adapter;
  } catch (problem) {
    loaded = undefined;
    throw problem;
  }
}

const methods = {
  describe: () => describe(folder),
  call: async ({ name, args, env }) => {
    const made = await adapter();
    if (typeof made[name] !== "function") throw new Error(`the adapter has no ${name}()`);
    return withEnv(env, () => made[name](...(args ?? [])));
  },
  codec: async ({ name, value }) => {
    const codec = (await adapter()).sessionCodec;
    return codec && typeof codec[name] === "function" ? codec[name](value) : value;
  },
};

function serve() {
  const channel = new net.Socket({ fd: 3, readable: true, writable: true });
  let idle = setTimeout(() => process.exit(0), IDLE_MS);
  let buffer = "";
  let queue = Promise.resolve();
  const answer = async (line) => {
    const call = JSON.parse(line);
    const reply = { jsonrpc: "2.0", id: call.id };
    try {
      const method = methods[call.method];
      if (!method) throw new Error(`there is no method ${call.method}`);
      reply.result = plain(await method(call.params ?? {}));
    } catch (problem) {
      console.error(problem);
      reply.error = { code: -32000, message: told(problem) };
    }
    channel.write(`${JSON.stringify(reply)}\n`);
  };
  channel.setEncoding("utf8");
  channel.on("data", (text) => {
    clearTimeout(idle);
    idle = setTimeout(() => process.exit(0), IDLE_MS);
    buffer += text;
    const lines = buffer.split("\n");
    buffer = lines.pop();
    for (const line of lines) queue = queue.then(() => answer(line));
  });
  channel.on("error", () => process.exit(0));
  channel.on("close", () => process.exit(0));
  process.on("unhandledRejection", (problem) => console.error(problem));
}

if (mode === "execute") execute();
else if (mode === "serve") serve();
else {
  console.error("Needs execute or serve, and the folder of a package.");
  process.exit(2);
}
