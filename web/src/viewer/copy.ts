/** A row as clean text for the clipboard. */

import { plain } from "../transcript/ansi";
import type { Row } from "../transcript/rows";
import { inputText, shellCommand } from "../words/tools";

export function copyText(row: Row): string {
  switch (row.type) {
    case "text":
    case "thinking":
    case "user":
      return row.text;
    case "tool": {
      const command = shellCommand(row.call);
      const asked = command ? `$ ${command}` : `${row.call.name} ${inputText(row.call)}`;
      return [asked, row.result ? plain(row.result.content) : ""].filter(Boolean).join("\n");
    }
    case "fold":
      return row.tools.map((tool) => copyText(tool)).join("\n");
    case "plan":
      return row.items
        .map((item) => `[${item.status === "completed" ? "x" : " "}] ${item.text}`)
        .join("\n");
    case "orphan":
      return plain(row.result.content);
    case "notice":
    case "unknown":
      return row.lines.map((line) => plain(line.text)).join("\n");
    case "diff":
      return row.lines.map((line) => line.text).join("\n");
    case "turn":
      return row.entry.text;
    case "init":
      return row.entry.sessionId;
  }
}
