import { button, count, element, find, joinLines, showAddress } from "./dom.js";
import { call, session, showError } from "./service.js";
import { openSource } from "./source.js";

const OUTCOMES = { confirmed: "Confirmed", refuted: "Refuted", open: "Open" };
const STANCES = { supported: "says so", refuted: "says otherwise", mixed: "says both", unknown: "comes near" };
const PARTS = { supported: "confirmed", refuted: "refuted", mixed: "the sources disagree", unknown: "no source settles this" };
const SNIPPET = 400;

/** Finds passages and shows them, best first. */
export async function search(query, signal) {
  const found = await fetchFor("search", "v1/search", find("hits"), { query, kb: session.kb }, signal);
  if (!found) return;
  // A row of a database is no document that could be opened: what it says is all that there is.
  const hits = [...found.hits.map((hit) => showHit(hit, query, "")), ...found.records.map((hit) => showHit(hit, query, hit.text))];
  find("hits").append(...hits, ...found.web.map(showResult));
  const told = hits.length ? `${count(hits.length, "passage")}, best first` : "No passage was found.";
  find("search-state").textContent = [told, ...found.degraded].join(" · ");
}

/** Checks each sentence of a text and shows what the documents make of it. */
export async function check(text, signal) {
  const checked = await fetchFor("check", "v1/verify/text", find("claims"), { text, kb: session.kb }, signal);
  if (!checked) return;
  find("claims").append(...checked.claims.map(showClaim));
  const counts = Object.entries(OUTCOMES).map(([name, word]) => `${checked.outcomes[name]} ${word.toLowerCase()}`);
  if (checked.skipped) counts.push(`${count(checked.skipped, "sentence")} without a statement`);
  if (checked.unchecked) counts.push(`${count(checked.unchecked, "sentence")} left unchecked: check the rest as a text of its own`);
  find("check-state").textContent = checked.claims.length ? counts.join(" · ") : "Nothing here states anything: questions and headings are not checked.";
}

/** Sends the request of a tab and returns its reply, or null after having shown why there is none. */
async function fetchFor(name, path, list, json, signal) {
  const state = find(`${name}-state`);
  state.textContent = name === "check" ? "Comparing each sentence with your documents …" : "Searching …";
  list.replaceChildren();
  try {
    const reply = await call("POST", path, { json, signal });
    return await reply.json();
  } catch (error) {
    const isStopped = error.name === "AbortError";
    state.textContent = isStopped ? "Stopped." : "";
    const again = new CustomEvent("again", { detail: { tab: name, text: json.query || json.text } });
    if (!isStopped) list.append(element("li", { className: "bare" }, showError(error, () => document.dispatchEvent(again))));
    return null;
  }
}

function showHit(hit, query, quote) {
  const title = button(hit.title || hit.uri, () => openSource(hit, quote, title), { className: "link stretched" });
  const place = [hit.section, hit.page ? `page ${hit.page}` : ""].filter(Boolean).join(" · ");
  const relevance = hit.relevance === null ? null : element("span", { className: "relevance" },
    element("meter", { value: hit.relevance, ariaHidden: "true" }), `${Math.round(100 * hit.relevance)} % relevant`);
  return element("li", {}, element("h3", {}, title), element("p", { className: "quiet" }, place || hit.uri, relevance),
    element("p", { className: "snippet" }, ...cutSnippet(hit.text, query)));
}

function showResult(result) {
  return element("li", {}, element("h3", { textContent: result.title }), element("p", { className: "quiet" }, showAddress(result.url)),
    element("p", { className: "snippet", textContent: result.snippet }));
}

/** Returns the part of a passage where the words of a query begin, with these words marked, in whatever form. */
function cutSnippet(passage, query) {
  const text = joinLines(passage.replace(/^(#+ .*\s+)+/, ""));
  const words = (query.match(/[\p{L}\p{N}]+/gu) || []).filter((word) => word.length > 3 || /[\p{Lu}\p{N}]/u.test(word.slice(1)));
  if (!words.length) return [text.slice(0, SNIPPET)];
  const stems = words.map((word) => (word.length > 5 ? word.slice(0, -2) : word.replace(/s$/, "")));
  const pattern = new RegExp(`(?<![\\p{L}\\p{N}])((?:${stems.join("|")})[\\p{L}\\p{N}]*)`, "giu");
  const first = text.search(pattern);
  const begin = first > SNIPPET / 2 ? text.lastIndexOf(" ", first - SNIPPET / 4) + 1 : 0;
  const shown = `${begin ? "… " : ""}${text.slice(begin, begin + SNIPPET)}${text.length > begin + SNIPPET ? " …" : ""}`;
  return shown.split(pattern).map((piece, i) => (i % 2 ? element("b", { textContent: piece }) : piece));
}

function showClaim(claim) {
  const decides = (evidence) => evidence.stance === claim.stance || (claim.stance === "mixed" && evidence.stance !== "unknown");
  const others = claim.evidence.filter((evidence) => !decides(evidence));
  const parts = claim.parts.length > 1 ? claim.parts : [];
  return element("li", { className: claim.outcome },
    element("p", { className: "outcome", textContent: OUTCOMES[claim.outcome] }),
    element("p", { className: "claim", textContent: claim.claim }),
    claim.outcome === "open" ? element("p", { className: "quiet", textContent: claim.stance === "mixed" ? "The sources disagree." : "No source settles this." }) : null,
    ...parts.map((part) => element("p", { className: "quiet", textContent: `“${part.text}”: ${PARTS[part.stance]}` })),
    ...claim.evidence.filter(decides).map(showEvidence),
    others.length ? element("details", {}, element("summary", { textContent: `${count(others.length, "further passage")} nearby` }), ...others.map(showEvidence)) : null);
}

function showEvidence(evidence) {
  const quote = button(`“${joinLines(evidence.text)}”`, () => openSource(evidence, evidence.text, quote), { className: "link quote" });
  const place = [evidence.title || evidence.uri, evidence.section].filter(Boolean).join(" · ");
  return element("div", { className: `evidence ${evidence.stance}` }, quote,
    element("p", { className: "quiet" }, element("b", { textContent: STANCES[evidence.stance] }), ` · ${[place, ...evidence.failed].join(" · ")}`));
}
