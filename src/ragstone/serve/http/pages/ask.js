import { ask, beginConversation } from "./answers.js";
import { listDocuments } from "./documents.js";
import { element, find } from "./dom.js";
import { check, search } from "./findings.js";
import { read, session, setKey, showError } from "./service.js";
import { closeSource } from "./source.js";

const ENTER = "Enter sends, Shift + Enter begins a line";
const TABS = {
  ask: { run: ask, label: "Your question", verb: "Ask", tip: ENTER },
  search: { run: search, label: "What to search for", verb: "Search", tip: ENTER },
  check: { run: check, label: "A claim or a text to check", verb: "Check", tip: "Ctrl + Enter checks" },
  documents: {},
};
const [box, form, kbs] = [find("text"), find("compose"), find("kb")];
let tab = "ask";
let [running, asked] = [null, ""];

function openTab(name) {
  tab = name;
  for (const other of Object.keys(TABS)) {
    find(other).hidden = other !== name;
    Object.assign(find(`tab-${other}`), { ariaSelected: String(other === name), tabIndex: other === name ? 0 : -1 });
  }
  const { label, verb, tip } = TABS[name];
  form.hidden = !verb;
  form.className = name;
  nameButtons();
  if (!verb) return session.key ? listDocuments() : null;
  find("text-label").textContent = box.placeholder = label;
  find("tip").textContent = tip;
  // The box follows the conversation, and stands above what it finds.
  if (name === "ask") find(name).append(form);
  else find(name).prepend(form);
}

function nameButtons() {
  find("send").textContent = running ? "Stop" : TABS[tab].verb;
  find("anew").hidden = tab !== "ask" || !find("thread").hasChildNodes();
}

async function submit(text) {
  if (running) return running.abort();
  const name = tab;
  if (!session.key) return showKeyForm();
  if (!text) return box.focus();
  [running, asked] = [new AbortController(), text];
  nameButtons();
  box.value = name === "ask" ? "" : text;
  try {
    await TABS[name].run(text, running.signal);
  } finally {
    running = null;
    nameButtons();
  }
}

function showKeyForm(isShown = true) {
  find("key-form").hidden = !isShown;
  find("key-button").ariaExpanded = String(isShown);
  find("forget").hidden = !session.key;
  if (isShown) find("key").focus();
}

/** Removes from the page what belongs to a key or knowledge base that is no longer in use. */
function clear() {
  running?.abort();
  closeSource();
  beginConversation();
  for (const name of ["hits", "claims", "search-state", "check-state"]) find(name).replaceChildren();
}

/** Shows the knowledge bases that the key may read, or what is wrong with the key. */
async function connect() {
  const wrong = find("key-problem");
  wrong.replaceChildren();
  try {
    const { kbs: known } = await read("v1/kbs");
    const apiKey = await read("v1/key");
    session.mayWrite = apiKey.scopes.includes("write");
    const names = known.map((kb) => kb.name);
    const wanted = new URLSearchParams(location.search).get("kb") || session.kb;
    if (wanted && !names.includes(wanted)) names.push(wanted);
    kbs.replaceChildren(...names.map((name) => element("option", { value: name, textContent: name })));
    kbs.value = wanted || (names.includes("default") ? "default" : names[0]);
    session.kb = kbs.value || null;
    setKey(session.key, find("remember").checked);
    find("kb-label").hidden = !names.length;
    showKeyForm(false);
    openTab(known.length ? tab : "documents");
    if (TABS[tab].run) box.focus();
  } catch (error) {
    showKeyForm();
    wrong.replaceChildren(showError(error, error.status === 401 ? null : connect));
  }
}

/** Fills in what the address asks for, without sending it: a link must not ask in somebody's name. */
function readAddress() {
  const wanted = new URLSearchParams(location.hash.slice(1));
  openTab(Object.hasOwn(TABS, wanted.get("tab")) ? wanted.get("tab") : tab);
  if (wanted.has("q")) box.value = wanted.get("q");
}

find("tabs").addEventListener("click", (event) => {
  if (event.target.role === "tab") openTab(event.target.id.slice("tab-".length));
});
find("tabs").addEventListener("keydown", (event) => {
  const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
  const names = Object.keys(TABS);
  if (!step) return;
  openTab(names.at((names.indexOf(tab) + step) % names.length));
  find(`tab-${tab}`).focus();
});
form.addEventListener("submit", (event) => {
  event.preventDefault();
  submit(box.value.trim());
});
box.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || event.shiftKey || event.isComposing || (tab === "check" && !event.ctrlKey && !event.metaKey)) return;
  event.preventDefault();
  if (!running) submit(box.value.trim());
});
find("anew").addEventListener("click", () => {
  beginConversation();
  openTab("ask");
  box.focus();
});
find("key-button").addEventListener("click", () => showKeyForm(find("key-form").hidden));
find("key-form").addEventListener("submit", (event) => {
  event.preventDefault();
  const key = find("key").value.trim();
  const isSendable = /^[\x21-\x7e]+$/.test(key);
  find("key-problem").textContent = isSendable ? "" : "A key has letters, figures, - and _ only.";
  if (!isSendable) return;
  clear();
  find("uploads").replaceChildren();
  session.kb = null;
  setKey(key, false);
  find("key").value = "";
  connect();
});
find("forget").addEventListener("click", () => {
  setKey("", false);
  location.reload();
});
kbs.addEventListener("change", () => {
  clear();
  session.kb = kbs.value;
  history.replaceState(null, "", `?${new URLSearchParams({ kb: kbs.value })}${location.hash}`);
  openTab(tab);
});
document.addEventListener("keyneeded", () => {
  setKey("", false);
  if (running) box.value ||= asked;
  showKeyForm();
});
document.addEventListener("uploaded", () => {
  if (!session.kb) connect(); // the first document began the first knowledge base
  else if (tab === "documents") listDocuments();
});
document.addEventListener("again", ({ detail }) => {
  openTab(detail.tab);
  if (running) box.value = detail.text;
  else submit(detail.text);
});
addEventListener("hashchange", readAddress);
find("remember").checked = Boolean(session.key);
beginConversation();
readAddress();
if (session.key) connect();
else showKeyForm();
