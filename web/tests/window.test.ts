import { describe, expect, it } from "vitest";
import { EntryWindow, MOST_HELD, orderOf, PAGE } from "../src/transcript/window";
import { entries, said, server } from "./entries";

const fresh = (seq: number, text = "new") => ({
  type: "entry" as const,
  entry: { ...entries(said(text))[0]!, id: `1o${seq}x.0`, seq },
});
const held = (window: EntryWindow) => window.entries.map((entry) => entry.seq);

describe("a window of entries", () => {
  it("opens around a place of a long run with one request", async () => {
    const { fetchPage, asked } = server(100_000);
    const window = new EntryWindow(fetchPage);
    await window.open(50_000);
    expect(asked).toEqual([[50_000 - PAGE / 2, PAGE]]);
    expect(window.at(50_000)?.seq).toBe(50_000);
    expect(window.total).toBe(100_000);
  });

  it("opens at the end with one request when the length is known", async () => {
    const { fetchPage, asked } = server(5000);
    const window = new EntryWindow(fetchPage);
    window.total = 5000;
    await window.openEnd();
    expect(asked).toHaveLength(1);
    expect(window.atEnd).toBe(true);
  });

  it("grows at both ends without gaps and never holds more than it may", async () => {
    const { fetchPage } = server(10_000);
    const window = new EntryWindow(fetchPage);
    await window.open(5000);
    for (let step = 0; step < 8; step++) await window.extendDown();
    expect(window.entries.length).toBe(MOST_HELD);
    for (let step = 0; step < 12; step++) await window.extendUp();
    expect(window.entries.length).toBe(MOST_HELD);
    expect(held(window)).toEqual(Array.from({ length: MOST_HELD }, (_, at) => window.from + at));
  });

  it("takes what the stream tells once, also when a page told it before", async () => {
    const { fetchPage } = server(3, "1.5.1");
    const window = new EntryWindow(fetchPage);
    await window.openEnd();
    expect(window.apply(fresh(2), orderOf("1.5.1"), true)).toBe(false);
    expect(window.apply({ type: "append", id: "1o20.0", text: "!" }, orderOf("1.4.1"), true)).toBe(
      false,
    );
    expect(window.apply(fresh(3), orderOf("1.6.1"), true)).toBe(true);
    expect(window.apply({ type: "append", id: "1o3x.0", text: "!" }, orderOf("1.7.1"), true)).toBe(
      true,
    );
    expect(window.total).toBe(4);
    expect(window.at(3)).toMatchObject({ text: "new!", seq: 3 });
  });

  it("follows a live run with bounded memory", async () => {
    const { fetchPage } = server(0, "1.0.1");
    const window = new EntryWindow(fetchPage);
    await window.openEnd();
    for (let at = 0; at < 10_000; at++) window.apply(fresh(at), orderOf(`1.${at + 1}.1`), true);
    expect(window.total).toBe(10_000);
    expect(window.atEnd).toBe(true);
    expect(window.entries.length).toBeLessThanOrEqual(MOST_HELD + PAGE);
  });

  it("keeps the place of a reader who does not follow", async () => {
    const { fetchPage } = server(10, "1.10.1");
    const window = new EntryWindow(fetchPage);
    await window.openEnd();
    for (let at = 10; at < 9000; at++) window.apply(fresh(at), orderOf(`1.${at + 1}.1`), false);
    expect(window.from).toBe(0);
    expect(window.entries.length).toBe(MOST_HELD);
    expect(window.total).toBe(9000);
  });

  it("replaces an entry where it stands", async () => {
    const { fetchPage } = server(3, "1.3.1");
    const window = new EntryWindow(fetchPage);
    await window.openEnd();
    const entry = { ...entries(said("changed"))[0]!, id: "1o10.0" };
    window.apply({ type: "replace", id: "1o10.0", entry }, orderOf("1.4.1"), true);
    expect(window.at(1)).toMatchObject({ text: "changed", seq: 1 });
  });

  it("orders ids of several attempts", () => {
    expect(orderOf("2.1.a.b")).toBeGreaterThan(orderOf("1.999999.1"));
    expect(orderOf("0.0.0")).toBe(0);
  });
});
