import { button, count, element, find } from "./dom.js";
import { call, read, ServiceError, session, showError } from "./service.js";
import { openSource } from "./source.js";

const STATES = { processing: "being read", pending: "waiting", failed: "failed", completed: "ready" };
const [rows, drop, uploads] = [find("listed").tBodies[0], find("drop"), find("uploads")];
const ACTIVE = ["pending", "running"];
let latest = 0;
let [states, after] = [[], ""];

/** Lists the documents of the knowledge base: first those that are not ready. */
export async function listDocuments() {
  const request = ++latest;
  [states, after] = [Object.keys(STATES), ""];
  find("documents-state").textContent = "Listing …";
  rows.replaceChildren();
  drop.hidden = !session.mayWrite;
  for (const line of uploads.children) line.hidden = Boolean(line.dataset.kb) && line.dataset.kb !== session.kb;
  await showPage(request);
}

async function showPage(request) {
  const more = find("more");
  more.hidden = true;
  try {
    for (let room = 100; states.length && room > 0;) {
      const chosen = new URLSearchParams({ status: states[0], limit: room, after });
      if (session.kb) chosen.set("kb", session.kb);
      const page = await read(`v1/documents?${chosen}`);
      if (request !== latest) return;
      rows.append(...page.documents.map(showRow));
      room -= page.documents.length;
      after = page.next || "";
      if (!page.next) states.shift();
    }
    more.hidden = !states.length;
    tellCount();
  } catch (error) {
    if (request !== latest) return;
    if (error.status === 404) tellCount(); // a knowledge base begins with its first document
    else find("documents-state").replaceChildren(showError(error, listDocuments));
    find("listed").hidden = !rows.children.length;
  }
}

function tellCount() {
  const empty = `There are no documents here yet.${session.mayWrite ? " Drop some above." : " This key may read, not upload."}`;
  const more = states.length ? "The first " : "";
  find("listed").hidden = !rows.children.length;
  find("documents-state").textContent = rows.children.length ? more + count(rows.children.length, "document") : empty;
}

/** Returns a button that gives way to the reason why a document has failed. */
function showReason(listed) {
  const shown = element("small", {}, button("Why?", tell, { className: "link" }));
  async function tell() {
    try {
      const status = await read(`v1/documents/${encodeURIComponent(listed.id)}`);
      shown.textContent = [status.processing_error, status.job?.hint].filter(Boolean).join(" – ");
    } catch (error) {
      shown.reshownChildren(showError(error, tell));
    }
  }
  return shown;
}

function showRow(listed) {
  const title = button(listed.title || listed.uri, () => openSource({ ...listed, document_id: listed.id, start: 0, end: 0 }, "", title), { className: "link" });
  const row = element("tr", {},
    element("td", {}, listed.status === "completed" ? title : listed.title || listed.uri, element("small", { className: "quiet", textContent: listed.uri })),
    element("td", { className: listed.status }, STATES[listed.status], listed.status === "failed" ? showReason(listed) : ""),
    element("td", { textContent: listed.chunks }),
    element("td", { textContent: new Date(listed.updated_at).toLocaleDateString() }),
    element("td", {}, session.mayWrite ? button("Delete", () => remove(listed, row), { className: "plain", ariaLabel: `Delete ${listed.title}` }) : ""));
  return row;
}

async function remove(listed, row) {
  if (!confirm(`Delete “${listed.title || listed.uri}” with everything made of it?`)) return;
  try {
    await call("DELETE", `v1/documents/${encodeURIComponent(listed.id)}`);
    row.remove();
    tellCount();
  } catch (error) {
    row.after(element("tr", {}, element("td", { colSpan: 5 }, showError(error))));
  }
}

/** Uploads files one after another; the service reads them meanwhile. All go where the page was when they were chosen. */
async function upload(files) {
  const { key, kb } = session;
  for (const file of [...files]) {
    if (session.key === key) await send(file, kb);
  }
}

async function send(file, kb) {
  const state = element("span", { className: "quiet", textContent: "is being uploaded …" });
  const line = element("li", {}, element("b", { textContent: file.name }), " ", state);
  line.dataset.kb = kb || "";
  uploads.prepend(line);
  const form = new FormData();
  form.append("file", file);
  if (kb) form.append("kb", kb);
  try {
    await file.slice(0, 1).arrayBuffer().catch(() => {
      throw new ServiceError(-1, { detail: "This cannot be read. Of a folder, choose the files in it." });
    });
    const reply = await call("POST", "v1/documents", { form });
    follow(await reply.json(), state);
  } catch (error) {
    const again = () => {
      line.remove();
      send(file, kb);
    };
    state.replaceWith(showError(error, [0, 429].includes(error.status) || error.status >= 500 ? again : null));
  }
}

/** Shows how a document comes along until it can be found or has failed. */
async function follow(first, state) {
  const tell = (text) => state.textContent === text || (state.textContent = text);
  let status = first;
  try {
    for (let wait = 0.4; ACTIVE.includes(status.job?.state); wait = Math.min(wait * 1.4, 4)) {
      const { job } = status;
      const left = job.eta_seconds === null ? "" : `, ${count(Math.ceil(job.eta_seconds / 60), "minute")} at most`;
      tell(job.stage ? `${job.stage}, ${job.progress} %${left}` : "waits to be read");
      await new Promise((done) => setTimeout(done, 1000 * wait));
      if (!state.isConnected) return; // another key is in use
      status = await read(`v1/documents/${encodeURIComponent(status.document_id)}`).catch((error) => {
        if (error.status !== 429) throw error;
        wait = Number(error.wait) || wait;
        return status;
      });
    }
  } catch (error) {
    return state.replaceChildren(showError(error, () => follow(status, state)));
  }
  const { job } = status;
  const hasFailed = status.status === "failed" || job?.state === "failed";
  state.className = hasFailed ? "failed" : "completed";
  const reasons = [status.processing_error || job?.error, job?.hint];
  tell([hasFailed ? "failed" : `ready, ${count(status.chunk_count, "passage")}`, ...(hasFailed ? reasons : job?.remarks || [])].filter(Boolean).join(" – "));
  document.dispatchEvent(new Event("uploaded"));
}

find("more").addEventListener("click", () => showPage(latest));
find("files").addEventListener("change", (event) => {
  upload(event.target.files);
  event.target.value = "";
});
document.addEventListener("dragover", (event) => {
  event.preventDefault();
  drop.classList.add("over");
});
document.addEventListener("dragleave", (event) => event.relatedTarget || drop.classList.remove("over"));
document.addEventListener("drop", (event) => {
  event.preventDefault();
  drop.classList.remove("over");
  if (session.mayWrite && drop.checkVisibility()) upload(event.dataTransfer.files);
});
