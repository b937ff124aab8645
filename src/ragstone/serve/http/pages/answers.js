import { button, element, find, joinLines, showCode } from "./dom.js";
import { call, readEvents, ServiceError, session, showError } from "./service.js";
import { openSource } from "./source.js";

const OUTCOMES = { answered: "Answered", nearest: "Not an answer", nothing: "Nothing found" };
const thread = find("thread");
let conversation = "";

/** Begins a conversation: questions before it are no longer meant by "it" and "what about". */
export function beginConversation() {
  conversation = `page-${[...crypto.getRandomValues(new Uint32Array(4))].map((number) => number.toString(36)).join("")}`;
  thread.replaceChildren();
}

/** Asks a question and shows the answer while it comes. */
export async function ask(question, signal) {
  const outcome = element("p", { className: "outcome", textContent: "Reading …" });
  const said = element("div", { className: "said" });
  const turn = element("article", { className: "turn waiting" }, element("h3", { textContent: question }), outcome, said);
  thread.append(turn);
  turn.scrollIntoView({ block: "start" });
  try {
    const json = { question, kb: session.kb, conversation };
    const reply = await call("POST", "v1/ask", { json, accept: "text/event-stream", signal });
    for await (const [name, told] of readEvents(reply)) {
      if (name === "sentence") said.append(showSentence(told));
      else if (name === "citations") nameMarks(said, told.citations);
      else if (name === "answer") return showAnswer(turn, outcome, said, told);
      else if (name === "error") throw new ServiceError(-1, { detail: told.error.message, hint: told.error.hint });
    }
    throw new TypeError("the stream ended before the answer was whole");
  } catch (error) {
    showBreak(turn, outcome, said, error, question);
  }
}

function showBreak(turn, outcome, said, error, question) {
  const [isStopped, isTold] = [error.name === "AbortError", error instanceof ServiceError];
  turn.className = "turn broken";
  outcome.textContent = isStopped ? "Stopped" : said.hasChildNodes() ? "Broken off" : "Failed";
  if (said.hasChildNodes()) {
    turn.append(element("p", { className: "quiet", textContent: "Each sentence above was checked; more may have followed." }));
  }
  if (isStopped) return;
  const detail = "The connection was lost before the answer was whole.";
  const retry = () => {
    turn.remove();
    document.dispatchEvent(new CustomEvent("again", { detail: { tab: "ask", text: question } }));
  };
  turn.append(showError(isTold ? error : new ServiceError(0, { detail }), retry));
}

/** Returns a sentence with its citation marks, which open their sources once these are known. */
function showSentence(sentence) {
  const marks = sentence.citations.map((n) => button(n, null, { className: "mark", disabled: true, value: n }));
  const text = wordSentence(sentence);
  const flag = sentence.support === "unsupported" ? element("em", { textContent: " (its source does not say so)" }) : null;
  // A word joiner keeps a mark on the line of the last word.
  return element("span", { className: text.includes("\n") || sentence.text.startsWith("|") ? "list" : "" }, ...showCode(text), flag, "\u2060", ...marks, " ");
}

/** Returns a sentence as the answer has it, which names the columns of a table's row, but with its lines. */
function wordSentence(sentence) {
  const marks = ` ${sentence.citations.map((n) => `[${n}]`).join("")}`;
  const isWorded = sentence.marked?.endsWith(marks) && !sentence.text.includes("\n");
  return isWorded ? sentence.marked.slice(0, -marks.length) : joinLines(sentence.text);
}

function nameMarks(root, citations) {
  for (const mark of root.querySelectorAll(".mark")) {
    const citation = citations.find((one) => one.n === Number(mark.value));
    if (!citation) continue;
    mark.disabled = false;
    mark.title = [citation.title, citation.section].filter(Boolean).join(" · ");
    mark.ariaLabel = `Source ${citation.n}: ${mark.title}`;
    mark.onclick = () => openSource(citation, citation.quote, mark);
  }
}

function showAnswer(turn, outcome, said, answer) {
  const isUnsourced = answer.status === "without_sources";
  turn.className = `turn ${isUnsourced ? "unsourced" : answer.outcome}`;
  outcome.textContent = isUnsourced ? "Not from your documents" : OUTCOMES[answer.outcome];
  if (answer.outcome !== "answered") said.before(element("p", { textContent: answer.answer.split("\n")[0] }));
  else if (isUnsourced) said.before(element("p", { textContent: "A language model says this by itself; no passage was found." }));
  const sentences = answer.outcome === "nearest" ? answer.nearest : answer.sentences;
  if (said.childElementCount !== sentences.length) said.replaceChildren(...sentences.map(showSentence));
  const missing = answer.missing.length && answer.outcome === "answered" ? [`No passage mentions ${answer.missing.join(" or ")}.`] : [];
  turn.append(
    showSources(answer.citations),
    showNotes("open", "Still open", [...answer.unanswered.map((open) => `${open}?`), ...missing]),
    showNotes("against", "Other passages say otherwise", answer.contradictions.map(showContradiction)),
    showNotes("quiet", "Note", answer.degraded));
  if (answer.outcome !== "answered") {
    const detail = { tab: "search", text: answer.question };
    turn.append(button("Search the passages instead", () => document.dispatchEvent(new CustomEvent("again", { detail })), { className: "plain" }));
  }
  nameMarks(turn, answer.citations);
}

/** Returns the sources, one line for each section that is cited. */
function showSources(citations) {
  const places = Map.groupBy(citations, (citation) => JSON.stringify([citation.document_id, citation.section, citation.uri]));
  const lines = [...places.values()].map((quotes) => element("li", {},
    ...quotes.map((citation) => button(citation.n, null, { className: "mark", value: citation.n })), " ",
    button(quotes[0].title || quotes[0].uri, (event) => openSource(quotes[0], quotes[0].quote, event.currentTarget), { className: "link" }),
    element("span", { className: "quiet", textContent: quotes[0].section ? ` · ${quotes[0].section}` : "" })));
  return lines.length ? element("ul", { className: "sources", ariaLabel: "Sources" }, ...lines) : "";
}

function showNotes(className, title, notes) {
  if (!notes.length) return "";
  return element("div", { className: `notes ${className}` }, element("strong", { textContent: title }),
    element("ul", {}, ...notes.map((note) => element("li", {}, note))));
}

function showContradiction(contradiction) {
  const open = (event) => openSource(contradiction, contradiction.quote, event.currentTarget);
  return element("span", {}, button(`“${contradiction.quote}”`, open, { className: "link" }),
    element("span", { className: "quiet", textContent: ` ${contradiction.title} – ${contradiction.reason}` }));
}
