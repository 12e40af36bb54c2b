/** Lines of a diff with their numbers, by file. */

import type { ChangeType, DiffLine } from "../api/types";

export interface NumberedLine {
  type: ChangeType;
  text: string;
  old: number | null;
  now: number | null;
}

export interface FileDiff {
  path: string;
  /** What a runtime says of the file itself: added, deleted. */
  note: string;
  added: number;
  removed: number;
  lines: NumberedLine[];
}

const HUNK = /^@@+ -(\d+)(?:,\d+)? \+(\d+)/;

export function numbered(lines: readonly DiffLine[]): FileDiff[] {
  const files: FileDiff[] = [];
  let [old, now] = [0, 0];
  for (const line of lines) {
    const path =
      line.path ?? (line.changeType === "file_header" ? line.text : (files.at(-1)?.path ?? ""));
    let file = files.at(-1);
    if (!file || file.path !== path || line.changeType === "file_header") {
      const note = line.changeType === "file_header" ? noteOf(line.text, path) : "";
      file = { path, note, added: 0, removed: 0, lines: [] };
      files.push(file);
      [old, now] = [0, 0];
      if (line.changeType === "file_header") continue;
    }
    const hunk = line.changeType === "hunk" ? HUNK.exec(line.text) : null;
    if (hunk) [old, now] = [Number(hunk[1]), Number(hunk[2])];
    const type = line.changeType;
    if (type === "add") file.added++;
    if (type === "remove") file.removed++;
    const [inOld, inNow] = [
      type === "remove" || type === "context",
      type === "add" || type === "context",
    ];
    file.lines.push({
      type,
      text: line.text,
      old: inOld && old ? old++ : null,
      now: inNow && now ? now++ : null,
    });
  }
  return files;
}

function noteOf(text: string, path: string): string {
  return text
    .replace(path, "")
    .replace(/^(?:\+\+\+|---)\s*/, "")
    .trim();
}

/** The lines of each file of a diff, in the order of the files; none where a file is not in it. */
export function byFile(
  text: string,
  files: readonly { path: string; shown: boolean }[],
): DiffLine[][] {
  const parts: DiffLine[][] = [];
  for (const line of parsed(text)) {
    if (line.changeType === "file_header") parts.push([]);
    else parts.at(-1)?.push(line);
  }
  let next = 0;
  return files.map((file) => {
    const found = file.shown ? (parts[next++] ?? []) : [];
    // A name may be quoted in the text of a diff; the list has it as it is.
    return found.map((line) => ({ ...line, path: file.path }));
  });
}

/** The text of a unified diff, as git prints it, in lines. */
export function parsed(text: string): DiffLine[] {
  const found: DiffLine[] = [];
  let path = "";
  let inHunk = false;
  const push = (changeType: ChangeType, line: string) =>
    found.push({ kind: "diff", id: "", seq: 0, ts: "", changeType, text: line, path });
  for (const line of text.split("\n")) {
    if (line.startsWith("diff --git ")) {
      path = / b\/(.*)$/.exec(line)?.[1] ?? line.slice(11);
      inHunk = false;
      push("file_header", path);
    } else if (line.startsWith("@@")) {
      inHunk = true;
      push("hunk", line);
    } else if (inHunk && line.startsWith("+")) push("add", line.slice(1));
    else if (inHunk && line.startsWith("-")) push("remove", line.slice(1));
    else if (inHunk && line.startsWith(" ")) push("context", line.slice(1));
    else if (line.startsWith("Binary files")) push("truncation", line);
  }
  return found;
}
