/** Makes an element with properties and children: elements and text; null stands for none. */
export function element(name, properties = {}, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children.filter((child) => child !== null));
  return made;
}

export function find(id) {
  return document.getElementById(id);
}

export function button(textContent, onclick, properties = {}) {
  return element("button", { type: "button", textContent, onclick, ...properties });
}

export function count(number, noun) {
  return `${number.toLocaleString("en")} ${noun}${number === 1 ? "" : "s"}`;
}

/** Joins lines that were broken for their width, and leaves those of a list, a table or code; words one row of a table. */
export function joinLines(text) {
  if (/^\|[^\n]*\|$/.test(text)) return text.slice(1, -1).split("|").map((cell) => cell.trim()).join(" · ");
  return text.replace(/\n(?=\p{Ll})|(?<=.{50})\n(?=[\p{L}("'“])/gu, " ").replace(/\n{2,}/g, "\n");
}

/** Returns a text with what stands between backticks as code. */
export function showCode(text) {
  return text.split(/`([^`\n]+)`/).map((piece, i) => (i % 2 ? element("code", { textContent: piece }) : piece));
}

/** Returns a link where an address is one of the web, and its text otherwise: a document may name any address. */
export function showAddress(uri) {
  if (!/^https?:\/\//i.test(uri)) return uri;
  return element("a", { href: uri, textContent: uri, target: "_blank", rel: "noopener noreferrer" });
}
