// Reads what Hermes prints for people: a bar, an emoji, a verb; plain lines are its answer.
// parser.py beside this file gives the same entries for the same lines.

const BAR = "\u250a";
const SPEECH = "\u{1f4ac}";
const DASH = " \u2014 ";
const NOTICE = /^\[hermes\] ([^]*)$/;
const SESSION = /^(?:Session(?: resumed| started)?|session_id): ([A-Za-z0-9][A-Za-z0-9_.:-]{0,199})$/;
const ENDED = /^\[(done|error)\] ([^]*)$/;
const CALL = /^(\$|[a-z][a-z_]*) ?([^]*)$/;
const TOOK = / ?([0-9]{1,6}(?:\.[0-9]{1,3})?)s$/;
const KINDS = new Map([
  ["$", "shell"],
  ["read", "read"],
  ["write", "write"],
  ["edit", "edit"],
  ["search", "search"],
  ["fetch", "web"],
]);

// Blanks and tabs only: engines disagree about other white space.
function strip(text) {
  return text.replace(/^[ \t]+/, "").replace(/[ \t]+$/, "");
}

function milliseconds(text) {
  const [whole, part = ""] = text.split(".");
  return Number(whole) * 1000 + Number(`${part}000`.slice(0, 3));
}

export function createStdoutParser() {
  let calls = [];
  let count = 0;

  function call(verb, detail, ts) {
    count += 1;
    const toolUseId = `hermes-${count}`;
    calls.push([verb, toolUseId]);
    return {
      kind: "tool_call",
      ts,
      name: verb === "$" ? "shell" : verb,
      input: verb === "$" ? { command: detail } : { target: detail },
      toolUseId,
      toolKind: KINDS.get(verb) ?? "other",
    };
  }

  function close(verb) {
    const at = calls.findIndex(([name]) => name === verb);
    return at < 0 ? undefined : calls.splice(at, 1)[0][1];
  }

  function done(text, failed, ts) {
    const at = text.indexOf(DASH);
    const head = strip(at < 0 ? text : text.slice(0, at));
    let output = at < 0 ? "" : text.slice(at + DASH.length);
    const called = CALL.exec(head);
    const verb = called ? called[1] : "tool";
    let detail = called ? strip(called[2]) : head;
    const took = TOOK.exec(at < 0 ? detail : output);
    if (took && at >= 0) output = output.slice(0, took.index);
    else if (took) detail = detail.slice(0, took.index);
    const made = [];
    let toolUseId = close(verb);
    if (toolUseId === undefined) {
      made.push(call(verb, detail, ts));
      toolUseId = close(verb);
    }
    const result = { kind: "tool_result", ts, toolUseId, content: output, isError: failed };
    result.toolName = verb === "$" ? "shell" : verb;
    if (took) result.durationMs = milliseconds(took[1]);
    made.push(result);
    return made;
  }

  function barred(text, ts) {
    if (text.startsWith(SPEECH)) {
      return [{ kind: "thinking", ts, text: strip(text.slice(SPEECH.length)) }];
    }
    const ended = ENDED.exec(text);
    if (ended) return done(ended[2], ended[1] === "error", ts);
    const called = CALL.exec(text);
    if (!called) return [{ kind: "system", ts, text }];
    return [call(called[1], strip(called[2]), ts)];
  }

  function parseLine(line, ts) {
    const text = strip(line);
    if (!text) return [];
    const notice = NOTICE.exec(text);
    if (notice) {
      const session = SESSION.exec(notice[1]);
      if (session) return [{ kind: "init", ts, model: "", sessionId: session[1] }];
      return [{ kind: "system", ts, text }];
    }
    if (text.startsWith("session_id: ")) return [{ kind: "system", ts, text }];
    if (text.startsWith(BAR)) return barred(strip(text.slice(BAR.length)), ts);
    return [{ kind: "assistant", ts, text: line }];
  }

  function reset() {
    calls = [];
    count = 0;
  }

  return { parseLine, reset };
}
