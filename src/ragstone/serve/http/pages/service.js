import { button, element, showCode } from "./dom.js";

const KEPT = "ragstone-key";
const NEXT = {
  401: "Enter a valid key above. `ragstone keys create` makes one.",
  403: "Ask an administrator for a key that may do this.",
  0: "See whether the service still runs and is reachable, then try again. Nothing that you typed is lost.",
};
/** The key is kept in memory; in the tab's storage, which ends with the tab, only if the user says so. */
export const session = { key: sessionStorage.getItem(KEPT) || "", kb: null, mayWrite: false };

export function setKey(key, isKept) {
  session.key = key;
  if (key && isKept) sessionStorage.setItem(KEPT, key);
  else sessionStorage.removeItem(KEPT);
}

/** An error of the service in its own words, or of the way to it with the status 0. */
export class ServiceError extends Error {
  constructor(status, problem, wait = "") {
    super(problem.detail || problem.title);
    Object.assign(this, { status, wait, title: (problem.detail && problem.title) || "", hint: problem.hint || "" });
  }
}

/** Sends a request and returns the reply; an answer that is an error is thrown. */
export async function call(method, path, { json, form, accept = "application/json", signal } = {}) {
  const headers = { Accept: accept };
  if (session.key) headers.Authorization = `Bearer ${session.key}`;
  if (json) headers["Content-Type"] = "application/json";
  let reply;
  try {
    reply = await fetch(path, { method, headers, body: json ? JSON.stringify(json) : form, signal });
  } catch (error) {
    throw error.name === "AbortError" ? error : new ServiceError(0, { detail: "The service does not answer." });
  }
  if (reply.ok) return reply;
  const problem = await reply.json().catch(() => ({ detail: `The reply was ${reply.status} ${reply.statusText}.` }));
  throw new ServiceError(reply.status, problem, reply.headers.get("Retry-After") || "");
}

export async function read(path) {
  return (await call("GET", path)).json();
}

/** Yields the name and data of each event of a stream as it comes. */
export async function* readEvents(reply) {
  const reader = reply.body.pipeThrough(new TextDecoderStream()).getReader();
  for (let rest = ""; ;) {
    const { done, value } = await reader.read();
    if (done) return;
    const blocks = (rest + value).split("\n\n");
    rest = blocks.pop();
    for (const block of blocks.filter((one) => one.startsWith("event: "))) {
      const [name, data] = block.split("\n");
      yield [name.slice("event: ".length), JSON.parse(data.slice("data: ".length))];
    }
  }
}

/** Returns what went wrong and what to do about it, with a button to try again. */
export function showError(error, retry = null) {
  if (!(error instanceof ServiceError)) console.error(error);
  if (error.status === 401) document.dispatchEvent(new Event("keyneeded"));
  const next = error.hint || (error.wait ? `Try again in ${error.wait} s.` : NEXT[error.status] || (error.status >= 500 ? "Try again in a moment." : ""));
  return element("div", { className: "problem", role: "alert" },
    element("p", {}, error.title ? element("strong", { textContent: `${error.title}: ` }) : null, error.message),
    element("p", {}, ...showCode(next)),
    retry ? button("Try again", (event) => { event.target.closest(".problem").remove(); retry(); }) : null);
}
