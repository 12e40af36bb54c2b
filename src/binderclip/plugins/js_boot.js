// Runs first in the engine, before any code of a parser: only the language stays, and what depends
// on the machine is settled, as in the browser's sandbox (U6).
// Kept references and index assignment: a parser may have replaced what it shares with us.
(function () {
  const LANGUAGE =
    "globalThis Infinity NaN undefined eval parseInt parseFloat isNaN isFinite decodeURI " +
    "decodeURIComponent encodeURI encodeURIComponent escape unescape Object Function Error " +
    "EvalError RangeError ReferenceError SyntaxError TypeError URIError AggregateError Array " +
    "Number Boolean String Math JSON Date RegExp Symbol BigInt Map Set WeakMap WeakSet WeakRef " +
    "FinalizationRegistry Promise Proxy Reflect Iterator ArrayBuffer DataView " +
    "Int8Array Uint8Array Uint8ClampedArray Int16Array Uint16Array Int32Array Uint32Array " +
    "BigInt64Array BigUint64Array Float32Array Float64Array Atomics";
  const BATCH_CHARACTERS = 4194304;
  const stringify = JSON.stringify, parse = JSON.parse;
  const join = Array.prototype.join, apply = Reflect.apply;
  const keys = Object.keys, isArray = Array.isArray;
  const text = String, cut = String.prototype.slice, Exhausted = InternalError;
  const named = /^parse\w*StdoutLine$/;
  let parser = null;
  const kept = new Set(LANGUAGE.split(" "));
  for (const name of Object.getOwnPropertyNames(globalThis)) {
    if (!kept.has(name)) delete globalThis[name];
  }
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
    Date.prototype.toLocaleString = function () { return iso(this, 0, 19).replace("T", " "); };
    Date.prototype.toLocaleDateString = function () { return iso(this, 0, 10); };
    Date.prototype.toLocaleTimeString = function () { return iso(this, 11, 19); };
  };
  settle();
  globalThis.console = { log() {}, info() {}, warn() {}, error() {}, debug() {} };
  const told = (problem) => {
    try {
      return apply(cut, text((problem && problem.message) || problem), [0, 300]);
    } catch {
      return "it threw something without words";
    }
  };
  const pick = (ns) => {
    const places = [ns, ns && ns.default].filter((p) => p !== null && p !== undefined);
    for (const place of places) {
      if (typeof place.createStdoutParser === "function") {
        const made = place.createStdoutParser();
        if (made && typeof made.parseLine === "function") {
          return { use: "createStdoutParser", call: (l, t) => made.parseLine(l, t) };
        }
      }
    }
    for (const place of places) {
      if (typeof place.parseStdoutLine === "function") {
        return { use: "parseStdoutLine", call: (l, t) => place.parseStdoutLine(l, t) };
      }
    }
    for (const place of places) {
      const names = keys(place).filter((n) => named.test(n) && typeof place[n] === "function");
      if (names.length === 1) {
        return { use: names[0], call: (l, t) => place[names[0]](l, t) };
      }
    }
    return null;
  };
  const made = {
    adopt() {
      const ns = globalThis.__ns;
      delete globalThis.__ns;
      parser = pick(ns);
      const names = ns ? keys(ns) : [];
      return stringify({ use: parser ? parser.use : null, exports: names });
    },
    batch(text) {
      const lines = parse(text), out = [];
      let size = 0;
      for (let i = 0; i < lines.length && size < BATCH_CHARACTERS; i += 1) {
        let piece;
        try {
          let answer = parser.call(lines[i][0], lines[i][1]);
          if (isArray(answer) && answer.length > 200) answer = answer.slice(0, 200);
          piece = stringify(answer === undefined ? null : answer);
          if (piece === undefined) piece = "null";
          if (piece.length > 1048576) piece = '{"error":"more than 1 MiB for one line"}';
        } catch (problem) {
          if (problem instanceof Exhausted) throw problem;
          piece = stringify({ error: told(problem) });
        }
        out[i] = piece;
        size += piece.length;
      }
      return apply(join, ["[", apply(join, out, [","]), "]"], [""]);
    },
  };
  globalThis.__adopt = made.adopt;
  globalThis.__batch = made.batch;
})();
