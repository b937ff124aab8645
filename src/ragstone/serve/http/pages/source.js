import { button, count, element, find, showAddress } from "./dom.js";
import { call, showError } from "./service.js";

const ROW = "row:";
const AROUND = 6000;
const FURTHER = 60_000;
const [panel, body] = [find("source"), find("source-text")];
let opener = null;
let latest = 0;

/** Returns the index in a string, which counts UTF-16, of a place that the service counts in code points. */
function indexOf(text, place) {
  let at = 0;
  for (let left = place; left > 0 && at < text.length; left--) at += text.codePointAt(at) > 0xffff ? 2 : 1;
  return at;
}

/** Opens the document of a citation, piece of evidence or hit at its place; a quote has to stand there word for word. */
export async function openSource(place, quote, from) {
  const request = ++latest;
  opener = from;
  const where = [place.section, place.page ? `page ${place.page}` : ""].filter(Boolean).join(" · ");
  find("source-title").textContent = place.title || place.uri;
  find("source-place").replaceChildren(where, where ? element("br") : "", showAddress(place.uri));
  body.replaceChildren(element("p", { className: "quiet", textContent: "Loading the document …" }));
  if (!panel.open) panel[matchMedia("(max-width: 60rem)").matches ? "showModal" : "show"]();
  document.body.classList.add("beside");
  find("source-title").focus();
  try {
    if (place.site) return body.replaceChildren(...showQuote(quote, `Found on the web, at ${place.site}:`));
    if (place.document_id.startsWith(ROW)) return body.replaceChildren(...showQuote(quote, "A row of a database:"));
    const text = await readText(place.document_id);
    if (request === latest) showText(text, place, quote);
  } catch (error) {
    if (request === latest) body.replaceChildren(showError(error), ...(quote ? showQuote(quote, "What it said:") : []));
  }
}

async function readText(id) {
  const reply = await call("GET", `v1/documents/${encodeURIComponent(id)}/text`);
  // `reply.text()` would drop a byte order mark at the beginning, which counts as a character.
  return new TextDecoder("utf-8", { ignoreBOM: true }).decode(await reply.arrayBuffer());
}

function showQuote(quote, note) {
  return [element("p", { className: "quiet", textContent: note }), element("blockquote", { textContent: quote })];
}

function showText(text, place, quote) {
  let [start, end] = [indexOf(text, place.start), indexOf(text, place.end)];
  let notes = [];
  if (quote && text.slice(start, end) !== quote) {
    start = Math.max(text.indexOf(quote), 0);
    end = text.startsWith(quote, start) ? start + quote.length : start;
    notes = showQuote(quote, `The document has changed since. ${end > start ? "It now says elsewhere" : "It no longer says"}:`);
  }
  const mark = element("mark", { textContent: text.slice(start, end) });
  const content = element("div", { className: "text" }, mark);
  const [before, after] = [button("", () => extend(FURTHER, 0)), button("", () => extend(0, FURTHER))];
  let [first, last] = [start, end];

  function extend(back, forth) {
    const [from, to] = [wholeIndex(text, first - back), wholeIndex(text, last + forth)];
    const height = body.scrollHeight;
    content.prepend(text.slice(from, first));
    before.hidden = from === 0;
    before.textContent = `Show more before (${count(from, "character")})`;
    body.scrollTop += body.scrollHeight - height;
    content.append(text.slice(last, to));
    after.hidden = to === text.length;
    after.textContent = `Show more after (${count(text.length - to, "character")})`;
    [first, last] = [from, to];
  }

  body.replaceChildren(...notes, before, content, after);
  extend(AROUND, AROUND);
  if (start === end) body.scrollTop = 0;
  else mark.scrollIntoView({ block: mark.offsetHeight > body.clientHeight / 2 ? "start" : "center" });
}

/** Returns an index within a text that is not between the two halves of a character. */
function wholeIndex(text, index) {
  const within = Math.min(Math.max(index, 0), text.length);
  return within && text.codePointAt(within - 1) > 0xffff ? within - 1 : within;
}

export function closeSource() {
  latest++;
  panel.close();
}

panel.addEventListener("close", () => {
  document.body.classList.remove("beside");
  if (opener?.isConnected) opener.focus();
});
find("source-close").addEventListener("click", closeSource);
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && panel.open) closeSource();
});
