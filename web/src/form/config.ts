/** From what stands in a form to an adapter's configuration, and back (F2). */

import type { ConfigField } from "../api/types";

export type Values = Record<string, unknown>;

const ALWAYS = new Set(["timeoutSec", "graceSec"]);
const UNSAFE = new Set(["__proto__", "constructor", "prototype"]);

/** The value that a dotted key names. */
export function valueAt(config: Values, key: string): unknown {
  return key
    .split(".")
    .reduce<unknown>(
      (inside, part) =>
        inside && typeof inside === "object" && Object.hasOwn(inside, part)
          ? (inside as Values)[part]
          : undefined,
      config,
    );
}

/** What a form shows first: stored values by the fields' keys. */
export function formValues(fields: readonly ConfigField[], config: Values): Values {
  const values: Values = {};
  for (const field of fields) {
    const value = valueAt(config, field.key);
    if (value !== undefined) values[field.key] = value;
  }
  return values;
}

/** Empty fields are left out, limits are always written, stored keys that nobody knows stay. */
export function adapterConfig(
  fields: readonly ConfigField[],
  values: Values,
  stored: Values = {},
): Values {
  const config = structuredClone(stored);
  for (const field of fields) {
    const value = values[field.key];
    if (!isEmpty(value)) put(config, field.key, value);
    else if (ALWAYS.has(field.key) && field.default != null) put(config, field.key, field.default);
    else remove(config, field.key);
  }
  return config;
}

/** The fields whose value is another than the stored one. */
export function changedKeys(
  fields: readonly ConfigField[],
  values: Values,
  stored: Values,
): string[] {
  return fields
    .filter((field) => {
      const [now, before] = [values[field.key], valueAt(stored, field.key)];
      return (
        JSON.stringify(isEmpty(now) ? null : now) !==
        JSON.stringify(isEmpty(before) ? null : before)
      );
    })
    .map((field) => field.key);
}

export function isEmpty(value: unknown): boolean {
  if (value == null || value === "") return true;
  if (Array.isArray(value)) return value.length === 0;
  return typeof value === "object" && Object.keys(value).length === 0;
}

function put(config: Values, key: string, value: unknown): void {
  const parts = key.split(".");
  if (parts.some((part) => UNSAFE.has(part))) return;
  let inside = config;
  for (const part of parts.slice(0, -1)) {
    const next = inside[part];
    inside[part] = next && typeof next === "object" && !Array.isArray(next) ? next : {};
    inside = inside[part] as Values;
  }
  inside[parts.at(-1)!] = value;
}

function remove(config: Values, key: string): void {
  const parts = key.split(".");
  const parent = parts.length > 1 ? valueAt(config, parts.slice(0, -1).join(".")) : config;
  if (parent && typeof parent === "object") delete (parent as Values)[parts.at(-1)!];
}

/** One set of labels for common fields; a schema's own label counts for the rest. */
const LABELS: Record<string, string> = {
  cwd: "Working directory",
  env: "Environment",
  timeoutSec: "Time limit, seconds",
  idleTimeoutSec: "Idle limit, seconds",
  graceSec: "Grace, seconds",
  maxLogBytes: "Most output, bytes",
  promptTemplate: "Prompt template",
  extraArgs: "Extra arguments",
  mcpServers: "MCP servers",
  maxBudgetUsd: "Budget of a run, USD",
};

/** A field that takes the name of a model. */
export function isModel(field: ConfigField): boolean {
  return /model$/i.test(field.key);
}

export function labelOf(field: ConfigField): string {
  return LABELS[field.key] ?? field.label;
}

const FIRST = new Set([
  "cwd",
  "host",
  "user",
  "port",
  "identityFile",
  "model",
  "command",
  "effort",
  "permissionMode",
  "sandbox",
  "url",
  "args",
]);

/** Dangerous fields stand apart, what most people need comes first, the rest waits folded. */
export function grouped(
  fields: readonly ConfigField[],
): { name: string; fields: ConfigField[]; folded: boolean; dangerous: boolean }[] {
  const groups: { name: string; fields: ConfigField[]; folded: boolean; dangerous: boolean }[] = [
    { name: "", fields: [], folded: false, dangerous: false },
  ];
  const of = (name: string, dangerous: boolean) => {
    let group = groups.find((one) => one.name === name);
    if (!group) {
      group = { name, fields: [], folded: true, dangerous };
      groups.push(group);
    }
    return group;
  };
  for (const field of fields) {
    if (field.dangerous) of("Dangerous", true).fields.push(field);
    else if (field.group) of(field.group, false).fields.push(field);
    else if (field.required || FIRST.has(field.key)) groups[0]!.fields.push(field);
    else
      of(/(?:Sec|Bytes|Turns|Usd)$/.test(field.key) ? "Limits" : "Advanced", false).fields.push(
        field,
      );
  }
  return groups
    .filter((group) => group.fields.length)
    .sort((a, b) => Number(a.dangerous) - Number(b.dangerous));
}
