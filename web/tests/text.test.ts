import { describe, expect, it } from "vitest";
import { plain, spans } from "../src/transcript/ansi";
import { byFile, numbered, parsed } from "../src/transcript/diff";
import { blocks } from "../src/transcript/markdown";
import { languageOf, tokens } from "../src/transcript/syntax";

const HOSTILE = [
  "<script>alert(1)</script>",
  "<img src=x onerror=alert(1)>",
  "[a](javascript:alert(1))",
  "[a](data:text/html,<script>alert(1)</script>)",
  "![x](https://elsewhere.example/pixel.png)",
  "<iframe src=https://elsewhere.example></iframe>",
  "<svg><a xlink:href=javascript:alert(1)>x</a></svg>",
  "<style>*{display:none}</style>",
  '<a href="x" style="position:fixed;inset:0">x</a>',
  "```html\n<script>alert(1)</script>\n```",
  '<form action="/api/runs"><input name=x></form>',
  "<math><mtext></form><form><mglyph><style></math><img src onerror=alert(1)>",
  "| a |\n|---|\n| <img src=x onerror=alert(1)> |",
];

describe("Markdown", () => {
  it.each(HOSTILE)("lets nothing run or load: %s", (text) => {
    const page = new DOMParser().parseFromString(blocks(text).join(""), "text/html");
    expect(
      page.querySelector("script, img, iframe, svg, style, form, math, object, link"),
    ).toBeNull();
    for (const element of page.body.querySelectorAll("*")) {
      for (const { name, value } of element.attributes) {
        expect(name).not.toMatch(/^on|^style$/);
        expect(value).not.toMatch(/^\s*(?:javascript|data):/i);
      }
    }
  });

  it("draws what agents write", () => {
    const html = blocks(
      "# Title\n\n- [x] done\n- **bold** `code`\n\n```py\ndef f(): pass\n```",
    ).join("");
    expect(html).toContain("<h1>Title</h1>");
    expect(html).toContain("<strong>bold</strong>");
    expect(html).toContain('<span class="tok-kw">def</span>');
    expect(html).toContain('type="checkbox"');
  });

  it("opens links elsewhere without telling where from", () => {
    expect(blocks("[a](https://example.org)")[0]).toContain('rel="noopener noreferrer nofollow"');
  });

  it("redraws only the block that grows", () => {
    const before = blocks("First.\n\nSecond gro");
    const after = blocks("First.\n\nSecond grows");
    expect(after[0]).toBe(before[0]);
    expect(after[1]).toBe("<p>Second grows</p>\n");
  });
});

describe("terminal output", () => {
  it("keeps colours as spans", () => {
    expect(spans("a\x1b[31mred\x1b[0m b")).toEqual([
      { text: "a", classes: "" },
      { text: "red", classes: "f1" },
      { text: " b", classes: "" },
    ]);
  });

  it("drops every other control sequence", () => {
    expect(
      plain("\x1b]0;title\x07\x1b[2J\x1b[1;1Hhi\x07\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\"),
    ).toBe("hilink");
  });

  it("shows what a progress bar wrote last", () => {
    expect(plain("10%\r50%\r100%\ndone\r\n")).toBe("100%\ndone\n");
  });

  it("reads 256 and true colours", () => {
    expect(spans("\x1b[38;5;196mx")[0]!.classes).toBe("f9");
    expect(spans("\x1b[38;2;0;200;0;1mx")[0]!.classes).toBe("f10 b");
  });
});

describe("syntax colours", () => {
  it("never lose a character", () => {
    for (const text of ["def f('a", "// x", "a 'b' \"c", "/* open", "don't # not", "0x1f 1e5 `x"]) {
      for (const language of ["py", "ts", "sh", "sql", "html", null]) {
        expect(
          tokens(text, language)
            .map((token) => token.text)
            .join(""),
        ).toBe(text);
      }
    }
  });

  it("know files by their names", () => {
    expect(languageOf("a/b.py")).toBe("py");
    expect(languageOf("Makefile")).toBe("makefile");
    expect(languageOf("x.constructor")).toBeNull();
  });
});

describe("diffs", () => {
  it("number their lines", () => {
    const [file] = numbered(parsed("diff --git a/x.py b/x.py\n@@ -3,2 +3,2 @@\n a\n-b\n+c\n"));
    expect(file).toMatchObject({ path: "x.py", added: 1, removed: 1 });
    expect(file!.lines.map((line) => [line.type, line.old, line.now])).toEqual([
      ["hunk", null, null],
      ["context", 3, 3],
      ["remove", 4, null],
      ["add", null, 4],
    ]);
  });

  it("gives each file its own lines, also where one is left out or has a quoted name", () => {
    const text =
      'diff --git "a/\\"q" "b/\\"q"\n@@ -1 +1 @@\n-a\n+b\ndiff --git a/z b/z\n@@ -0,0 +1 @@\n+z\n';
    const files = [
      { path: '"q', shown: true },
      { path: "large", shown: false },
      { path: "z", shown: true },
      { path: "lost", shown: true },
    ];
    const found = byFile(text, files);
    expect(found.map((lines) => lines.map((line) => line.text))).toEqual([
      ["@@ -1 +1 @@", "a", "b"],
      [],
      ["@@ -0,0 +1 @@", "z"],
      [],
    ]);
    expect(found[0]![0]!.path).toBe('"q');
  });
});
