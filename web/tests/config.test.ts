import { describe, expect, it } from "vitest";
import type { ConfigField } from "../src/api/types";
import { adapterConfig, changedKeys, formValues, grouped } from "../src/form/config";

const field = (key: string, more: Partial<ConfigField> = {}): ConfigField => ({
  key,
  label: key,
  type: "text",
  ...more,
});

describe("an adapter's configuration from a form (F2)", () => {
  const fields = [
    field("model"),
    field("timeoutSec", { type: "number", default: 14400 }),
    field("graceSec", { type: "number", default: 15 }),
    field("sandbox.mode"),
    field("env", { type: "keyvalue", default: {} }),
  ];

  it("leaves empty fields out and always writes the limits", () => {
    expect(adapterConfig(fields, { model: "", env: {} })).toEqual({
      timeoutSec: 14400,
      graceSec: 15,
    });
  });

  it("keeps stored keys that the form does not know", () => {
    const stored = { strange: { deep: 1 }, model: "old", sandbox: { other: true, mode: "x" } };
    const config = adapterConfig(fields, { model: "new", timeoutSec: 0 }, stored);
    expect(config).toEqual({
      strange: { deep: 1 },
      model: "new",
      timeoutSec: 0,
      graceSec: 15,
      sandbox: { other: true },
    });
    expect(stored.model).toBe("old");
  });

  it("nests dotted keys and reads them back", () => {
    const config = adapterConfig(fields, { "sandbox.mode": "read" });
    expect(config.sandbox).toEqual({ mode: "read" });
    expect(formValues(fields, config)["sandbox.mode"]).toBe("read");
  });

  it("never writes through a prototype", () => {
    adapterConfig([field("__proto__.hit")], { "__proto__.hit": "yes" });
    expect(({} as Record<string, unknown>).hit).toBeUndefined();
  });

  it("tells what changed, and that an empty field equals a missing one", () => {
    expect(changedKeys(fields, { model: "b", env: {} }, { model: "a" })).toEqual(["model"]);
    expect(changedKeys(fields, { model: "" }, {})).toEqual([]);
  });

  it("puts dangerous fields apart and last", () => {
    const groups = grouped([
      field("skipAll", { dangerous: true }),
      field("cwd"),
      field("maxTurns"),
    ]);
    expect(groups.map((group) => [group.name, group.dangerous])).toEqual([
      ["", false],
      ["Limits", false],
      ["Dangerous", true],
    ]);
  });
});
