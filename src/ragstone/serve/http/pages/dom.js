/** Makes an element with properties and children: elements and text; null stands for none. */
export function element(name, properties = {}, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children.filter((child) => child !== null));
  return made;
}
