/** A frame that can reach nothing, with one parser in a worker inside (U4).

Deadlines are held here, outside: when one passes, the frame is removed with all that runs in it. */

import bootstrap from "./bootstrap.js?raw";

const START_MS = 10_000;
export const LOAD_MS = 1000;
export const BATCH_MS = 300;
const ES = /\bexport\s*(?:[{*]|(?:default|async|function|const|let|var|class)\b)/;

/** Half of a surrogate pair: engines write whole ones as the character itself. */
const HALF = /(?<!\\)((?:\\\\)*)\\u[dD][89a-fA-F][0-9a-fA-F]{2}/g;

interface Answer {
  ready?: boolean;
  problem?: string;
  count?: number;
  text?: string;
}

/** Why a parser is no longer used, in words that finish "The adapter's parser is not used: …". */
export class ParserFailure extends Error {}

export class SandboxFrame {
  private readonly element = document.createElement("iframe");
  private readonly port: MessagePort;
  private readonly inner: MessagePort;
  private refuse: ((problem: ParserFailure) => void) | null = null;

  constructor() {
    const { port1, port2 } = new MessageChannel();
    this.port = port1;
    this.inner = port2;
    this.element.setAttribute("sandbox", "allow-scripts");
    this.element.hidden = true;
    this.element.title = "Parser";
    this.element.src = "/sandbox";
  }

  /** Load a parser; a failure says why it cannot be used. */
  async load(source: string): Promise<void> {
    const started = this.answer(START_MS, "its sandbox did not start");
    this.element.onload = () =>
      this.element.contentWindow?.postMessage(bootstrap, "*", [this.inner]);
    document.body.append(this.element);
    await started;
    const loaded = this.answer(LOAD_MS, `deadline: it did not load within ${LOAD_MS} ms`);
    this.port.postMessage({ source, isModule: ES.test(source) });
    const { problem, ready } = await loaded;
    if (!ready) throw this.failed(`it cannot be loaded: ${problem ?? "it gave no reason"}`);
  }

  /** What the parser returns for each line; always as many answers as lines. */
  async parse(lines: [text: string, ts: string][]): Promise<unknown[]> {
    const answers: unknown[] = [];
    while (answers.length < lines.length) {
      const asked = this.answer(BATCH_MS, `deadline: lines took more than ${BATCH_MS} ms`);
      this.port.postMessage({ lines: lines.slice(answers.length) });
      for (const answer of this.checked(await asked)) answers.push(answer);
    }
    return answers;
  }

  close(): void {
    this.element.remove();
    this.port.close();
    this.refuse?.(new ParserFailure("it was stopped"));
    this.refuse = null;
  }

  private checked({ count, text, problem }: Answer): unknown[] {
    if (problem) throw this.failed(problem);
    let found: unknown = null;
    try {
      found = JSON.parse((text ?? "").replace(HALF, "$1\ufffd"));
    } catch {
      // Told below: what is no JSON is no list of answers either.
    }
    if (!Array.isArray(found) || !count || found.length !== count)
      throw this.failed("results ≠ lines: it gave another number of answers than lines");
    return found;
  }

  private answer(within: number, reason: string): Promise<Answer> {
    return new Promise((resolve, reject) => {
      let open = true;
      // A page that was busy itself gets to read an answer that came in time.
      const late = () => setTimeout(() => open && reject(this.failed(reason)));
      const timer = setTimeout(late, within);
      this.refuse = reject;
      this.port.onmessage = ({ data }: MessageEvent<Answer>) => {
        open = false;
        clearTimeout(timer);
        this.refuse = null;
        resolve(data);
      };
    });
  }

  private failed(reason: string): ParserFailure {
    this.refuse = null;
    this.close();
    return new ParserFailure(reason);
  }
}
