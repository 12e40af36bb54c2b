/** What an agent does by itself and where, beside its adapter's configuration; as a form's fields. */

import type { Agent, ConfigField } from "../api/types";
import { changedKeys, type Values } from "../form/config";

const GROUP = "Rhythm and place";
const PLACES = [
  { value: "worktree", label: "a worktree for each task, where there is a repository" },
  { value: "cwd", label: "the working directory itself" },
];

export function habitFields(environments: { id: string; name: string }[]): ConfigField[] {
  return [
    {
      key: "heartbeatMinutes",
      label: "Wakes by itself, every so many minutes",
      type: "number",
      hint: "Without a number it wakes only when somebody or something wakes it.",
    },
    {
      key: "maxConcurrentRuns",
      label: "Runs at once",
      type: "number",
      default: 1,
      hint: "Two runs never work on the same task at once.",
    },
    {
      key: "retryLimit",
      label: "Retries",
      type: "number",
      default: 3,
      hint: "After failures that may pass, such as an overloaded model.",
    },
    { key: "workspace", label: "Works in", type: "select", options: PLACES, default: "worktree" },
    {
      key: "environmentId",
      label: "Machine",
      type: "select",
      options: environments.map(({ id, name }) => ({ value: id, label: name })),
      hint: "Other machines are added in Settings; without one it works here.",
    },
  ].map((field) => ({ ...field, group: GROUP }) as ConfigField);
}

export function habitsOf(agent: Agent): Values {
  const { heartbeatMinutes, maxConcurrentRuns, retryLimit, workspace, environmentId } = agent;
  return { heartbeatMinutes, maxConcurrentRuns, retryLimit, workspace, environmentId };
}

/** The changed ones as a request's fields; an emptied one goes back to its default. */
export function habitChanges(
  fields: readonly ConfigField[],
  values: Values,
  stored: Values,
): Values {
  const changed = changedKeys(fields, values, stored);
  const defaults = Object.fromEntries(fields.map((field) => [field.key, field.default ?? null]));
  return Object.fromEntries(changed.map((key) => [key, values[key] ?? defaults[key]]));
}
