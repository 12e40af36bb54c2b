// Preloaded into the adapter host: keeps the exact bytes of the children that an adapter spawns.
// Adapters decode each chunk by itself, which damages characters that a read cut in two.

import childProcess from "node:child_process";
import { syncBuiltinESMExports } from "node:module";
import { StringDecoder } from "node:string_decoder";

const MOST_WAITING = 2000;

export const children = new Set();
export const tap = { on: false, write: () => {}, waiting: [], unmatched: 0 };

// Take the chunk that this text was made from out of the queue; its bytes are written already
// or now. False for a text that no child printed: a notice, or the output of a service.
export function matched(text) {
  for (let at = 0; at < tap.waiting.length; at += 1) {
    const entry = tap.waiting[at];
    if (entry.plain !== text && entry.joined !== text) continue;
    tap.waiting.splice(at, 1);
    settle(entry.child);
    return true;
  }
  return false;
}

// The first text of a child that reaches onLog shows that its output belongs to the run's log;
// a version probe never gets there.
function settle(child) {
  if (child.logged) return;
  child.logged = true;
  for (const [stream, bytes] of child.held) tap.write(stream, bytes);
  child.held = [];
}

function listen(child, stream, readable) {
  if (!readable) return;
  const decoder = new StringDecoder("utf8");
  const push = readable.push.bind(readable);
  readable.push = (chunk, encoding) => {
    if (chunk !== null && chunk !== undefined && tap.on) {
      const bytes = Buffer.isBuffer(chunk) ? chunk : Buffer.from(chunk, encoding);
      if (child.logged) tap.write(stream, bytes);
      else child.held.push([stream, Buffer.from(bytes)]);
      tap.waiting.push({ child, plain: String(bytes), joined: decoder.write(bytes) });
      if (tap.waiting.length > MOST_WAITING) {
        tap.waiting.shift();
        tap.unmatched += 1;
      }
    }
    return push(chunk, encoding);
  };
}

const spawn = childProcess.spawn;

childProcess.spawn = function tappedSpawn(command, args, options) {
  const given = Array.isArray(args) ? (options ?? {}) : (args ?? {});
  const words = Array.isArray(args) ? args : [];
  const env = { ...(given.env ?? process.env) };
  // Adapters invent an address where no server is; the run's own variables must not get lost.
  if (!process.env.PAPERCLIP_API_URL) delete env.PAPERCLIP_API_URL;
  for (const [name, value] of Object.entries(process.env)) {
    if (name.startsWith("BINDERCLIP_")) env[name] = value;
  }
  const made = spawn.call(this, command, words, { ...given, env });
  if (made.pid !== undefined) {
    const child = { process: made, detached: Boolean(given.detached), logged: false, held: [] };
    children.add(child);
    made.once("exit", () => {
      child.gone = true;
    });
    listen(child, 1, made.stdout);
    listen(child, 2, made.stderr);
  }
  return made;
};
syncBuiltinESMExports();

for (const name of ["log", "info", "debug", "dir", "table"]) {
  console[name] = console.error.bind(console);
}
