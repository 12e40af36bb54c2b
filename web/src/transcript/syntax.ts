/** Syntax colours good enough to read a diff by: strings, comments, numbers, words of the language.

One scanner for all languages, a line or a block at a time; it never fails and never backtracks. */

export interface Token {
  text: string;
  kind: "" | "str" | "com" | "num" | "kw" | "fn";
}

interface Language {
  line: string[];
  block: [string, string] | null;
  words: ReadonlySet<string>;
}

const words = (text: string): ReadonlySet<string> => new Set(text.split(" "));
const C_WORDS = words(
  "abstract as async await bool boolean break case catch chan char class const continue default defer delete do double else enum export extends final finally float fn for foreach from func function go goto if impl implements import in instanceof int interface internal let long loop map match mod move mut namespace new nil null number of operator package private protected pub public range readonly record ref return select self short static string struct super switch template this throw throws trait true false try type typeof undefined union unsafe unsigned use using var virtual void volatile where while with yield",
);
const PYTHON_WORDS = words(
  "False None True and as assert async await break case class continue def del elif else except finally for from global if import in is lambda match nonlocal not or pass raise return self try while with yield",
);
const SHELL_WORDS = words(
  "case do done elif else esac exit export fi for function if in local return set then until while echo cd",
);
const RUBY_WORDS = words(
  "begin class def do else elsif end ensure false if module nil not or require rescue return self super then true unless until when while yield",
);
const SQL_WORDS = words(
  "select from where and or not insert into values update set delete create table index join left right inner outer on group by order limit as null primary key references unique default alter drop SELECT FROM WHERE AND OR NOT INSERT INTO VALUES UPDATE SET DELETE CREATE TABLE INDEX JOIN LEFT RIGHT INNER OUTER ON GROUP BY ORDER LIMIT AS NULL PRIMARY KEY REFERENCES UNIQUE DEFAULT ALTER DROP",
);
const NONE: ReadonlySet<string> = new Set();

const C_LIKE: Language = { line: ["//"], block: ["/*", "*/"], words: C_WORDS };
const PYTHON: Language = { line: ["#"], block: null, words: PYTHON_WORDS };
const SHELL: Language = { line: ["#"], block: null, words: SHELL_WORDS };
const RUBY: Language = { line: ["#"], block: null, words: RUBY_WORDS };
const DATA: Language = { line: ["#"], block: null, words: words("true false null yes no") };
const MARKUP: Language = { line: [], block: ["<!--", "-->"], words: NONE };
const CSS: Language = { line: [], block: ["/*", "*/"], words: NONE };
const SQL: Language = { line: ["--"], block: ["/*", "*/"], words: SQL_WORDS };

const BY_NAME: Record<string, Language> = {};
for (const [names, language] of [
  [
    "js jsx ts tsx mjs cjs svelte vue java kt c h cc cpp hpp cs go rs swift php scala dart json json5 javascript typescript rust",
    C_LIKE,
  ],
  ["py pyi python", PYTHON],
  ["sh bash zsh fish shell console dockerfile makefile mk", SHELL],
  ["rb ruby ex exs pl", RUBY],
  ["yaml yml toml ini cfg conf env lock", DATA],
  ["html htm xml svg md markdown", MARKUP],
  ["css scss less", CSS],
  ["sql", SQL],
] as const) {
  for (const name of names.split(" ")) BY_NAME[name] = language;
}

export function languageOf(path: string): string | null {
  const name = path.split("/").at(-1)?.toLowerCase() ?? "";
  const ending = name.includes(".") ? name.slice(name.lastIndexOf(".") + 1) : name;
  return Object.hasOwn(BY_NAME, ending) ? ending : null;
}

const WORD = /[A-Za-z_$][\w$]*/y;
const NUMBER = /(?:0[xob][\da-f_]+|\d[\d_]*(?:\.\d+)?(?:e[+-]?\d+)?)/iy;

export function tokens(text: string, name: string | null): Token[] {
  const language = name && Object.hasOwn(BY_NAME, name) ? BY_NAME[name]! : null;
  if (!language || text.length > 20_000) return [{ text, kind: "" }];
  const found: Token[] = [];
  let at = 0;
  while (at < text.length) {
    const [end, kind] = next(text, at, language);
    const last = found.at(-1);
    if (last && last.kind === kind && kind === "") last.text += text.slice(at, end);
    else found.push({ text: text.slice(at, end), kind });
    at = end;
  }
  return found;
}

function next(text: string, at: number, language: Language): [number, Token["kind"]] {
  const char = text[at]!;
  for (const mark of language.line) {
    if (text.startsWith(mark, at) && (at === 0 || mark !== "#" || /\s/.test(text[at - 1]!))) {
      return [lineEnd(text, at), "com"];
    }
  }
  if (language.block && text.startsWith(language.block[0], at)) {
    const close = text.indexOf(language.block[1], at + language.block[0].length);
    return [close < 0 ? text.length : close + language.block[1].length, "com"];
  }
  if (char === '"' || char === "'" || char === "`") return [quoted(text, at, char), "str"];
  WORD.lastIndex = at;
  const word = WORD.exec(text)?.[0];
  if (word) {
    const end = at + word.length;
    if (language.words.has(word)) return [end, "kw"];
    return [end, language.words.size && text[end] === "(" ? "fn" : ""];
  }
  NUMBER.lastIndex = at;
  const number = NUMBER.exec(text)?.[0];
  return number ? [at + number.length, "num"] : [at + 1, ""];
}

function quoted(text: string, at: number, quote: string): number {
  for (let end = at + 1; end < text.length; end++) {
    const char = text[end];
    if (char === "\\") end++;
    else if (char === quote) return end + 1;
    else if (char === "\n" && quote !== "`") return at + 1;
  }
  // An apostrophe in prose opens nothing.
  return quote === "`" ? text.length : at + 1;
}

function lineEnd(text: string, at: number): number {
  const end = text.indexOf("\n", at);
  return end < 0 ? text.length : end;
}
