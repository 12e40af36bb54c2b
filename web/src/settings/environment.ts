/** The fields of another machine, as the form draws them. */

import type { ConfigField, Environment } from "../api/types";

const ADVANCED = "Advanced";

export const MACHINE_FIELDS: ConfigField[] = [
  {
    key: "host",
    label: "Host",
    type: "text",
    required: true,
    hint: "A name or address, or a name of your ssh config.",
  },
  { key: "user", label: "User", type: "text", hint: "Empty: as your ssh config says." },
  { key: "port", label: "Port", type: "number", default: 22 },
  {
    key: "identityFile",
    label: "Identity file",
    type: "text",
    hint: "A private key on this machine; empty: your ssh agent.",
  },
  {
    key: "knownHosts",
    label: "Unknown host key",
    type: "select",
    options: [
      { value: "verify", label: "refuse it" },
      { value: "accept-new", label: "take it the first time" },
    ],
    default: "verify",
    group: ADVANCED,
    hint: "A key that has changed is always refused.",
  },
  { key: "knownHostsFile", label: "Known hosts file", type: "text", group: ADVANCED },
  {
    key: "remoteRoot",
    label: "Directory of binderclip over there",
    type: "text",
    default: "~/.binderclip-remote",
    group: ADVANCED,
  },
  {
    key: "python",
    label: "Python over there",
    type: "text",
    default: "python3",
    group: ADVANCED,
    hint: "3.9 or newer.",
  },
  { key: "path", label: "In front of PATH over there", type: "list", group: ADVANCED },
  {
    key: "inPlace",
    label: "Checkout that lives over there",
    type: "text",
    group: ADVANCED,
    hint: "Runs work in it, and nothing travels.",
  },
  { key: "paths", label: "Ignored paths that travel all the same", type: "list", group: ADVANCED },
  {
    key: "leaseSec",
    label: "Goes on without this machine for, seconds",
    type: "number",
    default: 120,
    group: ADVANCED,
  },
];

export function addressOf({ kind, config }: Environment): string {
  if (kind !== "ssh") return "this machine";
  const at = [config.user, config.host].filter(Boolean).join("@");
  return config.port ? `${at}:${config.port}` : at;
}
