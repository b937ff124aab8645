import { element } from "./dom.js";

const METHODS = ["get", "post", "put", "patch", "delete"];
const DEEPEST = 6;

/** Returns what a schema refers to; a schema that names another is that one. */
function resolve(api, schema) {
  if (!schema || !schema.$ref) return schema || {};
  return schema.$ref.slice(2).split("/").reduce((at, part) => at[part], api);
}

/** Returns a value of the form that a schema asks for; of an object, the required fields. */
function sample(api, given, depth = 0) {
  const schema = resolve(api, given);
  if (schema.default !== undefined && schema.default !== null) return schema.default;
  if (schema.const !== undefined) return schema.const;
  if (schema.enum) return schema.enum[0];
  const choice = (schema.anyOf || schema.oneOf || schema.allOf || []).find((one) => one.type !== "null");
  if (choice) return sample(api, choice, depth);
  if (depth > DEEPEST) return null;
  if (schema.type === "array") return [sample(api, schema.items, depth + 1)];
  if (schema.type === "object" || schema.properties) {
    const required = schema.required || [];
    const names = Object.keys(schema.properties || {}).filter((name) => required.includes(name));
    return Object.fromEntries(names.map((name) => [name, sample(api, schema.properties[name], depth + 1)]));
  }
  return { integer: 1, number: 1, boolean: true, string: "" }[schema.type] ?? null;
}

function nameType(api, given) {
  const schema = resolve(api, given);
  const choices = schema.anyOf || schema.oneOf;
  if (choices) return choices.filter((one) => one.type !== "null").map((one) => nameType(api, one)).join(" or ");
  if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(" | ");
  if (schema.type === "array") return `list of ${nameType(api, schema.items)}`;
  return schema.title && schema.properties ? schema.title : schema.format || schema.type || "any";
}

function showFields(api, title, rows) {
  if (!rows.length) return null;
  const lines = rows.map(([name, schema, required, text]) => element("tr", {},
    element("td", {}, element("code", { textContent: name }), required ? "" : element("span", { className: "quiet", textContent: " optional" })),
    element("td", { textContent: nameType(api, schema) }),
    element("td", { textContent: text || resolve(api, schema).description || "" })));
  return element("div", {}, element("h3", { textContent: title }), element("table", {}, element("tbody", {}, ...lines)));
}

function listFields(api, given) {
  const schema = resolve(api, given);
  const required = schema.required || [];
  const fields = Object.entries(schema.properties || {}).map(([name, field]) => [name, field, required.includes(name), field.description]);
  return fields.sort((one, other) => other[2] - one[2]);
}

/** Returns the media type and schema of a request's body, or null where it has none. */
function findBody(api, operation) {
  const content = resolve(api, operation.requestBody).content || {};
  const type = ["application/json", "multipart/form-data"].find((one) => content[one]) || Object.keys(content)[0];
  return type ? { type, schema: content[type].schema } : null;
}

function buildForm(api, method, path, operation) {
  const inputs = (operation.parameters || []).map((given) => {
    const parameter = resolve(api, given);
    const value = resolve(api, parameter.schema).default ?? "";
    return { parameter, input: element("input", { value: typeof value === "object" ? "" : String(value), ariaLabel: parameter.name }) };
  });
  const body = findBody(api, operation);
  const isForm = body && body.type === "multipart/form-data";
  const fields = isForm ? listFields(api, body.schema).map(([name, schema]) => buildField(api, name, schema)) : [];
  const text = body && !isForm
    ? element("textarea", { value: JSON.stringify(sample(api, body.schema), null, 2), ariaLabel: "body", spellcheck: false })
    : null;
  const result = element("div");
  const send = element("button", { textContent: "Send", type: "submit" });
  const rows = [...inputs.map(({ parameter, input }) => [parameter.name, input]), ...fields.map((input) => [input.name, input])].map(
    ([name, input]) => element("tr", {}, element("td", {}, element("code", { textContent: name })), element("td", {}, input)));
  const form = element("form", {}, element("h3", { textContent: "Try it" }),
    rows.length ? element("table", {}, element("tbody", {}, ...rows)) : null, text, element("p", {}, send), result);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    send.disabled = true;
    const content = isForm ? packForm(fields) : text ? text.value : undefined;
    try {
      await request(result, method, path, inputs, content, text ? body.type : null);
    } finally {
      send.disabled = false;
    }
  });
  return form;
}

/** Returns the input of one field of a form: a file, or text. */
function buildField(api, name, given) {
  const schema = resolve(api, given);
  if (schema.format === "binary" || schema.contentMediaType) return element("input", { name, type: "file", ariaLabel: name });
  const value = schema.default ?? "";
  return element("input", { name, value: typeof value === "object" ? "" : String(value), ariaLabel: name });
}

function packForm(fields) {
  const form = new FormData();
  for (const input of fields) {
    const value = input.type === "file" ? input.files[0] : input.value;
    if (value) form.append(input.name, value);
  }
  return form;
}

async function request(result, method, path, inputs, body, type) {
  const headers = {};
  const query = new URLSearchParams();
  const key = document.getElementById("key").value.trim();
  if (key) headers.Authorization = `Bearer ${key}`;
  if (type) headers["Content-Type"] = type;
  let address = path;
  for (const { parameter, input } of inputs) {
    if (parameter.in === "path") address = address.replace(`{${parameter.name}}`, encodeURIComponent(input.value));
    else if (input.value && parameter.in === "query") query.append(parameter.name, input.value);
    else if (input.value && parameter.in === "header") headers[parameter.name] = input.value;
  }
  if ([...query].length) address += `?${query}`;
  const status = element("p", { className: "quiet", textContent: "Waiting …" });
  const shown = element("pre");
  result.replaceChildren(status);
  const started = performance.now();
  try {
    const reply = await fetch(address.slice(1), { method: method.toUpperCase(), headers, body });
    status.textContent = `${reply.status} ${reply.statusText} · ${reply.headers.get("content-type") || "no content"}`;
    status.className = reply.ok ? "quiet" : "failed";
    result.append(shown);
    await readInto(shown, reply);
    status.textContent += ` · ${Math.round(performance.now() - started)} ms`;
  } catch (error) {
    status.className = "failed";
    status.textContent = `The request failed: ${error.message}`;
  }
}

/** Shows a reply as it comes: events of a stream appear one by one. */
async function readInto(shown, reply) {
  const isJson = /json/.test(reply.headers.get("content-type") || "");
  const decoder = new TextDecoder();
  let text = "";
  for (const reader = reply.body.getReader(); ;) {
    const { done, value } = await reader.read();
    if (done) break;
    text += decoder.decode(value, { stream: true });
    if (!isJson) shown.textContent = text;
  }
  shown.textContent = isJson ? layOut(text) : text;
}

function layOut(text) {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

function showOperation(api, method, path, operation) {
  const details = element("details", {}, element("summary", {},
    element("span", { className: `method ${method}`, textContent: method.toUpperCase() }),
    element("code", { textContent: path }),
    element("span", { className: "quiet", textContent: firstLine(operation) })));
  details.dataset.words = `${method} ${path} ${firstLine(operation)} ${Object.keys(operation.responses || {}).join(" ")}`.toLowerCase();
  details.addEventListener("toggle", () => {
    if (details.open && details.children.length === 1) details.append(showBody(api, method, path, operation));
  });
  return details;
}

function firstLine(operation) {
  return (operation.description || operation.summary || "").split("\n")[0];
}

function showBody(api, method, path, operation) {
  const parameters = (operation.parameters || []).map((given) => resolve(api, given));
  const body = findBody(api, operation);
  const replies = Object.entries(operation.responses || {}).map(([status, reply]) => {
    const content = Object.values(reply.content || {})[0];
    return [status, content ? content.schema : {}, true, reply.description];
  });
  return element("div", { className: "body" },
    element("p", { textContent: (operation.description || "").split("\n").slice(1).join(" ").trim() }),
    showFields(api, "Parameters", parameters.map((one) => [one.name, one.schema, one.required, `${one.description || ""} (${one.in})`])),
    body ? showFields(api, `Body, ${body.type}`, listFields(api, body.schema)) : null,
    showFields(api, "Replies", replies),
    buildForm(api, method, path, operation));
}

function filterOperations() {
  const words = document.getElementById("filter").value.toLowerCase().split(/\s+/).filter(Boolean);
  for (const section of document.querySelectorAll("section")) {
    const found = [...section.querySelectorAll("details")].filter((details) => {
      details.hidden = !words.every((word) => details.dataset.words.includes(word));
      return !details.hidden;
    });
    section.hidden = !found.length;
  }
  document.getElementById("nothing").hidden = !document.querySelector("section") || !!document.querySelector("section:not([hidden])");
}

async function showReference() {
  const main = document.getElementById("operations");
  const reply = await fetch("openapi.json");
  if (!reply.ok) throw new Error(`openapi.json: ${reply.status}`);
  const api = await reply.json();
  document.getElementById("version").textContent = api.info.version;
  const groups = new Map();
  for (const [path, item] of Object.entries(api.paths)) {
    for (const method of METHODS.filter((one) => item[one])) {
      const tag = (item[method].tags || ["other"])[0];
      groups.set(tag, [...(groups.get(tag) || []), showOperation(api, method, path, item[method])]);
    }
  }
  main.replaceChildren(...[...groups].map(([tag, operations]) => element("section", {}, element("h2", { textContent: tag }), ...operations)));
  document.getElementById("filter").addEventListener("input", filterOperations);
}

showReference().catch((error) => {
  document.getElementById("operations").textContent = `The description could not be loaded: ${error.message}`;
});
