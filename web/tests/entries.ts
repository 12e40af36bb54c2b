/** Entries for tests, numbered as the server numbers them. */

import type { Entry, TranscriptPage } from "../src/api/types";

type Fields = Record<string, unknown> & { kind: Entry["kind"] };

export function entries(...list: Fields[]): Entry[] {
  return list.map(
    (fields, seq) =>
      ({
        ts: new Date(Date.UTC(2026, 0, 1) + seq * 1000).toISOString(),
        id: `1o${seq * 10}.0`,
        seq,
        ...fields,
      }) as unknown as Entry,
  );
}

export const call = (toolUseId: string, toolKind = "shell", more: object = {}): Fields => ({
  kind: "tool_call",
  name: "Bash",
  input: { command: "ls" },
  toolUseId,
  toolKind,
  ...more,
});

export const result = (toolUseId: string, more: object = {}): Fields => ({
  kind: "tool_result",
  toolUseId,
  content: "ok",
  isError: false,
  durationMs: 10,
  ...more,
});

export const said = (text: string, more: object = {}): Fields => ({
  kind: "assistant",
  text,
  ...more,
});

/** Pages of a transcript of so many texts. */
export function server(total: number, cursor = `1.${total}.1`) {
  const asked: [number, number][] = [];
  const all = entries(...Array.from({ length: total }, (_, at) => said(`text ${at}`)));
  const fetchPage = async (from: number, limit: number): Promise<TranscriptPage> => {
    asked.push([from, limit]);
    const page = all.slice(from, from + limit);
    return { entries: page, fromSeq: from, total: all.length, complete: true, cursor };
  };
  return { asked, all, fetchPage };
}
