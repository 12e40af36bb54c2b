// Runs first in the sandbox's worker, before any code of a parser: it takes away everything but
// the language, then loads the parser and calls it line by line (U4).
// Kept references and index assignment throughout: a parser may replace what it shares with us.
(() => {
  "use strict";
  const LANGUAGE =
    "globalThis Infinity NaN undefined eval parseInt parseFloat isNaN isFinite decodeURI " +
    "decodeURIComponent encodeURI encodeURIComponent escape unescape Object Function Error " +
    "EvalError RangeError ReferenceError SyntaxError TypeError URIError AggregateError Array " +
    "Number Boolean String Math JSON Date RegExp Symbol BigInt Map Set WeakMap WeakSet WeakRef " +
    "FinalizationRegistry Promise Proxy Reflect Iterator ArrayBuffer DataView " +
    "Int8Array Uint8Array Uint8ClampedArray Int16Array Uint16Array Int32Array Uint32Array " +
    "BigInt64Array BigUint64Array Float32Array Float64Array Atomics";
  const MOST_ENTRIES = 200;
  const LINE_CHARACTERS = 1048576;
  const BATCH_CHARACTERS = 4194304;
  const NAMED = /^parse\w*StdoutLine$/;
  const { stringify } = JSON;
  const { isArray } = Array;
  const { keys, getOwnPropertyNames, getPrototypeOf } = Object;
  const { apply, deleteProperty: remove } = Reflect;
  const { join, slice } = Array.prototype;
  const { test } = RegExp.prototype;
  const textSlice = String.prototype.slice;
  const text = String;
  const load = self.importScripts;
  const scope = self;
  const addressOf = URL.createObjectURL;
  const urls = URL;
  const Source = Blob;
  const post = MessagePort.prototype.postMessage;
  let parser = null;

  const told = (problem) => {
    try {
      return apply(textSlice, text((problem && problem.message) || problem), [0, 300]);
    } catch {
      return "it threw something without words";
    }
  };

  const address = (source) =>
    apply(addressOf, urls, [new Source([source], { type: "text/javascript" })]);

  const strip = () => {
    const kept = new Set(LANGUAGE.split(" "));
    for (let place = scope; place && place !== Object.prototype; place = getPrototypeOf(place)) {
      for (const name of getOwnPropertyNames(place)) {
        // Constants cannot be deleted, and need not be.
        if (!kept.has(name)) remove(place, name);
      }
    }
    const quiet = () => {};
    scope.console = { log: quiet, info: quiet, warn: quiet, error: quiet, debug: quiet };
  };

  // Locale and time zone are the machine's; what a parser says must not depend on them.
  const settle = () => {
    const { toFixed } = Number.prototype;
    const { toISOString } = Date.prototype;
    const iso = (date, from, to) => toISOString.call(date).slice(from, to);
    Number.prototype.toLocaleString = function () {
      const digits = toFixed.call(this, 3).replace(/\.?0+$/, "");
      return digits.replace(/^-?\d+/, (whole) => whole.replace(/\B(?=(\d{3})+$)/g, ","));
    };
    String.prototype.localeCompare = function (other) {
      const [one, two] = [String(this), String(other)];
      return one < two ? -1 : Number(one > two);
    };
    Date.prototype.toLocaleString = function () {
      return iso(this, 0, 19).replace("T", " ");
    };
    Date.prototype.toLocaleDateString = function () {
      return iso(this, 0, 10);
    };
    Date.prototype.toLocaleTimeString = function () {
      return iso(this, 11, 19);
    };
  };

  const pick = (exported) => {
    const places = [exported, exported && exported.default].filter((one) => one != null);
    for (const place of places) {
      if (typeof place.createStdoutParser !== "function") continue;
      const made = place.createStdoutParser();
      if (made && typeof made.parseLine === "function") return (l, t) => made.parseLine(l, t);
    }
    for (const place of places) {
      if (typeof place.parseStdoutLine === "function") return (l, t) => place.parseStdoutLine(l, t);
    }
    for (const place of places) {
      const names = keys(place).filter(
        (name) => apply(test, NAMED, [name]) && typeof place[name] === "function",
      );
      if (names.length === 1) return (l, t) => place[names[0]](l, t);
    }
    return null;
  };

  const loadCommonJs = (source) => {
    const module = { exports: {} };
    scope.__cjs = (body) => apply(body, module.exports, [module, module.exports]);
    try {
      // Line ends around the source: its last line may be a comment.
      apply(load, scope, [address(`__cjs(function (module, exports) {\n${source}\n});`)]);
    } finally {
      delete scope.__cjs;
    }
    return pick(module.exports);
  };

  const open = async (source, isModule) => {
    let problem = "it exports neither createStdoutParser nor parseStdoutLine";
    try {
      parser = pick(await import(address(source)));
      if (parser) return { ready: true };
    } catch (error) {
      problem = told(error);
    }
    try {
      parser = loadCommonJs(source);
    } catch (error) {
      // The CommonJS error would hide what is wrong with a file in ES form.
      if (!isModule) problem = told(error);
    }
    return parser ? { ready: true } : { problem };
  };

  const answered = (line, ts) => {
    try {
      let answer = parser(line, ts);
      if (isArray(answer) && answer.length > MOST_ENTRIES) {
        answer = apply(slice, answer, [0, MOST_ENTRIES]);
      }
      const piece = stringify(answer === undefined ? null : answer);
      if (piece === undefined) return "null";
      return piece.length > LINE_CHARACTERS ? '{"error":"more than 1 MiB for one line"}' : piece;
    } catch (problem) {
      return stringify({ error: told(problem) });
    }
  };

  const batch = (lines) => {
    const pieces = [];
    let size = 0;
    let count = 0;
    while (count < lines.length && size < BATCH_CHARACTERS) {
      const piece = answered(lines[count][0], lines[count][1]);
      pieces[count] = piece;
      size += piece.length;
      count += 1;
    }
    return { count, text: apply(join, ["[", apply(join, pieces, [","]), "]"], [""]) };
  };

  scope.onmessage = (event) => {
    const port = event.ports[0];
    const say = (answer) => apply(post, port, [answer]);
    port.onmessage = async ({ data }) => {
      try {
        say(data.lines ? batch(data.lines) : await open(data.source, data.isModule));
      } catch (problem) {
        say({ problem: told(problem) });
      }
    };
    scope.onmessage = null;
    strip();
    settle();
    say({ ready: true });
  };
})();
