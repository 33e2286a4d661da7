// What the newest reports say that those before them did not.

import { dot, element, exact } from "./elements.js";

// `changes` are of the device's newest report of each kind that has one before it.
export function changesSection(changes) {
  if (!changes.length) return null;
  return element("section", { id: "changes" },
    element("h2", {}, "What changed"),
    element("div", { class: "cards" }, ...changes.map(since)));
}

const since = (each) => element("div", { class: "change" },
  element("p", {},
    element("a", { class: "name", href: `#/report/${each.reportId}` }, `${each.kind} report`), " ",
    element("span", { class: "sub" }, "since ",
      element("a", { href: `#/report/${each.earlierId}` }, element("time", { datetime: each.since }, exact(each.since))))),
  each.changes.length
    ? element("ul", {}, ...each.changes.map(({ tone, sentence }) =>
        element("li", { class: "line" }, dot(tone), element("span", {}, sentence))),
      each.more ? element("li", { class: "sub" }, `and ${each.more} more`) : null)
    : element("p", { class: "sub" }, each.verdict),
  each.notCompared.length ? element("p", { class: "sub" }, each.notCompared.join(" ")) : null);
