/** Markdown to HTML that is safe to put into the page. */

import DOMPurify from "dompurify";
import { Marked } from "marked";

// No images, forms, styles or ids: a model's text must not load, ask for or restyle anything.
const TAGS =
  "a p br hr em strong del code pre blockquote ul ol li h1 h2 h3 h4 h5 h6 " +
  "table thead tbody tr th td input";
const ATTRIBUTES = "href title align start type checked disabled";

const escapeHtml = (text: string) =>
  text.replace(/[&<>"]/g, (character) => `&#${character.charCodeAt(0)};`);

// HTML is shown as written: even while being removed, its handlers and styles
// would be reported as violations of the content security policy.
const markdown = new Marked({
  async: false,
  gfm: true,
  breaks: true,
  renderer: {
    html: ({ text }) => escapeHtml(text),
    image: ({ href, text }) => `<a href="${escapeHtml(href)}">${escapeHtml(text || href)}</a>`,
  },
});

const purifier = DOMPurify(window);
purifier.addHook("afterSanitizeAttributes", (node) => {
  if (node.tagName === "A") {
    node.setAttribute("target", "_blank");
    node.setAttribute("rel", "noopener noreferrer");
  }
  // Task lists are the only inputs that Markdown writes.
  if (node.tagName === "INPUT" && node.getAttribute("type") !== "checkbox") node.remove();
});

export function renderMarkdown(text: string): string {
  return purifier.sanitize(markdown.parse(text, { async: false }), {
    ALLOWED_TAGS: TAGS.split(" "),
    ALLOWED_ATTR: ATTRIBUTES.split(" "),
    ALLOW_DATA_ATTR: false,
    // Without this their values are tried against the pattern for addresses.
    ADD_URI_SAFE_ATTR: ["align", "start", "type", "checked", "disabled"],
    ALLOWED_URI_REGEXP: /^(?:https?:|mailto:|#)/i,
  });
}
