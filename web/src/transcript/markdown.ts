/** An agent's Markdown as clean HTML, block by block, so that growing text redraws its last block only.

Nothing an agent writes may run, load from elsewhere, or look like a part of the app. */

import DOMPurify from "dompurify";
import { Marked, type Token, type Tokens } from "marked";
import { tokens as coloured } from "./syntax";

const TAGS =
  "a b blockquote br code del div em h1 h2 h3 h4 h5 h6 hr i input kbd li ol p pre s span strong sub sup table tbody td th thead tr ul".split(
    " ",
  );
const ATTRIBUTES = [
  "href",
  "title",
  "class",
  "align",
  "start",
  "checked",
  "disabled",
  "type",
  "tabindex",
];
const CLASSES = /^(?:tok-[a-z]+|image)$/;
const KEPT_BLOCKS = 2000;

const marked = new Marked({ gfm: true, breaks: false, async: false });
marked.use({
  renderer: {
    code({ text, lang }: Tokens.Code): string {
      const inside = coloured(text, (lang ?? "").trim().toLowerCase().split(/\s/)[0] || null)
        .map((token) =>
          token.kind
            ? `<span class="tok-${token.kind}">${escaped(token.text)}</span>`
            : escaped(token.text),
        )
        .join("");
      // A long line scrolls sideways, by keys as well.
      return `<pre tabindex="0"><code>${inside}\n</code></pre>`;
    },
    // Loading a picture would tell its host who reads.
    image({ href, text }: Tokens.Image): string {
      return `<a class="image" href="${escaped(href)}">${escaped(text || href)}</a>`;
    },
    html({ text }: Tokens.HTML | Tokens.Tag): string {
      return escaped(text);
    },
  },
});

const purifier = DOMPurify(window);
purifier.addHook("afterSanitizeAttributes", (node) => {
  if (node.tagName === "A") {
    const href = node.getAttribute("href") ?? "";
    if (/^(?:https?:|mailto:)/i.test(href)) {
      node.setAttribute("target", "_blank");
      node.setAttribute("rel", "noopener noreferrer nofollow");
    } else node.removeAttribute("href");
  }
  if (node.tagName === "INPUT") {
    if (node.getAttribute("type") !== "checkbox") node.remove();
    else node.setAttribute("disabled", "");
  }
  for (const name of [...node.classList]) if (!CLASSES.test(name)) node.classList.remove(name);
});

const drawn = new Map<string, string>();

/** The blocks of a text, each clean HTML. */
export function blocks(text: string): string[] {
  let parts: Token[];
  try {
    parts = marked.lexer(text);
  } catch {
    return [`<pre>${escaped(text)}</pre>`];
  }
  const links = (parts as Token[] & { links: object }).links;
  return parts.filter((part) => part.type !== "space").map((part) => block(part, links));
}

function block(part: Token, links: object): string {
  const known = drawn.get(part.raw);
  if (known !== undefined) return known;
  const html = clean(part, links);
  if (drawn.size >= KEPT_BLOCKS) drawn.delete(drawn.keys().next().value!);
  drawn.set(part.raw, html);
  return html;
}

function clean(part: Token, links: object): string {
  try {
    const html = marked.parser(Object.assign([part], { links }) as never);
    return purifier.sanitize(html, {
      ALLOWED_TAGS: TAGS,
      ALLOWED_ATTR: ATTRIBUTES,
      ALLOW_DATA_ATTR: false,
      ALLOW_ARIA_ATTR: false,
    });
  } catch {
    return `<pre>${escaped(part.raw)}</pre>`;
  }
}

export function escaped(text: string): string {
  return text
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;");
}
