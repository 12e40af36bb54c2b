/** The bytes around the line that an entry came from, read by range. */

export interface RawPiece {
  stream: string;
  offset: number;
  size: number;
  before: string;
  line: string;
  after: string;
}

const BEFORE = 4096;
const AFTER = 16_384;
const MOST_PICTURE = 24 * 1024 * 1024;

async function range(
  address: string,
  from: number,
  to: number,
  signal?: AbortSignal,
): Promise<{ data: Uint8Array; size: number }> {
  const answer = await fetch(address, { headers: { range: `bytes=${from}-${to}` }, signal });
  if (!answer.ok) throw new Error("The raw output cannot be read.");
  const size = Number(
    answer.headers.get("content-range")?.split("/")[1] ?? answer.headers.get("content-length") ?? 0,
  );
  return { data: new Uint8Array(await answer.arrayBuffer()), size };
}

export async function rawAround(
  runId: string,
  attempt: number,
  stream: string,
  offset: number,
  signal: AbortSignal,
): Promise<RawPiece> {
  const from = Math.max(0, offset - BEFORE);
  const address = `/api/runs/${runId}/log?stream=${stream}&attempt=${attempt}`;
  const { data, size } = await range(address, from, offset + AFTER, signal);
  const text = new TextDecoder();
  const start = offset - from;
  const end = data.indexOf(10, start);
  const stop = end < 0 ? data.length : end;
  // The piece may begin inside a line or a character: show whole lines only.
  const first = from === 0 ? 0 : data.indexOf(10) + 1;
  return {
    stream,
    offset,
    size,
    before: text.decode(data.subarray(Math.min(first, start), start)),
    line: text.decode(data.subarray(start, stop)),
    after: text.decode(data.subarray(stop)),
  };
}

/** The pictures inside the line that an entry came from, as data addresses. */
export async function picturesOf(
  runId: string,
  attempt: number,
  stream: string,
  offset: number,
): Promise<string[]> {
  const address = `/api/runs/${runId}/log?stream=${stream}&attempt=${attempt}`;
  const { data } = await range(address, offset, offset + MOST_PICTURE);
  const end = data.indexOf(10);
  const line = new TextDecoder().decode(end < 0 ? data : data.subarray(0, end));
  return picturesIn(JSON.parse(line));
}

const MEDIA = /^image\/(?:png|jpeg|gif|webp)$/;
const BASE64 = /^[A-Za-z0-9+/=\s]+$/;

export function picturesIn(value: unknown, found: string[] = []): string[] {
  if (Array.isArray(value)) for (const one of value) picturesIn(one, found);
  else if (typeof value === "object" && value !== null) {
    const record = value as Record<string, unknown>;
    const media = record.media_type ?? record.mediaType ?? record.mimeType;
    const data = record.data;
    if (
      typeof media === "string" &&
      MEDIA.test(media) &&
      typeof data === "string" &&
      BASE64.test(data)
    ) {
      found.push(`data:${media};base64,${data}`);
    } else for (const one of Object.values(record)) picturesIn(one, found);
  }
  return found;
}
