// Loading an npm package that was written for Paperclip, whichever way it offers its adapter.

import fs from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";

const CONDITIONS = ["node", "import", "default", "require"];
const METHODS = [
  "execute", "testEnvironment", "listSkills", "syncSkills", "listModels", "refreshModels",
  "detectModel", "getConfigSchema",
];

export function target(value) {
  if (typeof value === "string") return value;
  if (Array.isArray(value)) return value.map(target).find(Boolean);
  if (value === null || typeof value !== "object") return undefined;
  for (const name of [...CONDITIONS, ...Object.keys(value)]) {
    if (name === "types" || !(name in value)) continue;
    const found = target(value[name]);
    if (found) return found;
  }
  return undefined;
}

export function entry(facts, name) {
  const exports = facts.exports;
  if (name === "." && (typeof exports === "string" || exports === undefined)) {
    return target(exports) ?? facts.module ?? facts.main ?? "index.js";
  }
  if (exports === undefined || exports === null || typeof exports !== "object") return undefined;
  if (name === "." && !Object.keys(exports).some((key) => key.startsWith("."))) {
    return target(exports);
  }
  return target(exports[name]);
}

async function imported(folder, file) {
  if (!file) return {};
  const full = path.resolve(folder, file);
  if (full !== folder && !full.startsWith(folder + path.sep)) {
    throw new Error(`package.json names ${file}, which lies outside of the package`);
  }
  const module = await import(pathToFileURL(full).href);
  const inner = module.default;
  return inner && typeof inner === "object" ? { ...inner, ...module } : module;
}

export function readPackage(folder) {
  return JSON.parse(fs.readFileSync(path.join(folder, "package.json"), "utf8"));
}

export async function loadAdapter(folder) {
  const facts = readPackage(folder);
  const root = await imported(folder, entry(facts, "."));
  const make = typeof root.createServerAdapter === "function" ? root.createServerAdapter : undefined;
  const notes = Object.keys(root)
    .filter((name) => /^create\w+ServerAdapter$/.test(name))
    .map((name) => `The package also offers ${name}.`);
  if (make) {
    const made = await make();
    if (!made || typeof made !== "object") {
      throw new Error("createServerAdapter() returned no adapter");
    }
    return { adapter: made, root, notes };
  }
  const server = await imported(folder, entry(facts, "./server"));
  if (typeof server.createServerAdapter === "function") {
    return { adapter: await server.createServerAdapter(), root, notes };
  }
  if (typeof server.execute !== "function" && typeof root.execute !== "function") {
    throw new Error("the package has neither createServerAdapter() nor execute()");
  }
  return { adapter: { ...root, ...server }, root, notes };
}

// Methods may stand on the prototype of a class, so they are read by name and never spread.
export async function describe(folder) {
  const { adapter, root, notes } = await loadAdapter(folder);
  const schema =
    typeof adapter.getConfigSchema === "function" ? await adapter.getConfigSchema() : null;
  const models = Array.isArray(adapter.models) ? adapter.models : (root.models ?? []);
  const doc = adapter.agentConfigurationDoc ?? root.agentConfigurationDoc ?? "";
  const management = adapter.sessionManagement;
  return {
    type: adapter.type ?? root.type,
    label: adapter.label ?? root.label ?? null,
    methods: METHODS.filter((name) => typeof adapter[name] === "function"),
    models: models.filter((model) => model && typeof model.id === "string"),
    doc: typeof doc === "string" ? doc : "",
    flags: {
      supportsLocalAgentJwt: adapter.supportsLocalAgentJwt === true,
      supportsInstructionsBundle: adapter.supportsInstructionsBundle === true,
      instructionsPathKey: adapter.instructionsPathKey ?? "instructionsFilePath",
      requiresMaterializedRuntimeSkills: adapter.requiresMaterializedRuntimeSkills === true,
    },
    sessionManagement: management && typeof management === "object" ? management : null,
    schema,
    notes,
    node: process.versions.node,
  };
}
