// Shows the differences between the newest report of each kind and the report before it.

import { dot, element, exactTime } from "./elements.js";

// `changes` has an entry for each kind of which the device has at least two reports.
export function changesSection(changes) {
  if (!changes.length) return null;
  return element("section", { id: "changes" },
    element("h2", {}, "What changed"),
    element("div", { class: "cards" }, ...changes.map(changesOf)));
}

const changesOf = (each) => element("div", { class: "change" },
  element("p", {},
    element("a", { class: "name", href: `#/report/${each.reportId}` }, `${each.kind} report`), " ",
    element("span", { class: "sub" }, "since ",
      element("a", { href: `#/report/${each.earlierId}` }, element("time", { datetime: each.since }, exactTime(each.since))))),
  each.changes.length
    ? element("ul", {}, ...each.changes.map(({ severity, sentence }) =>
        element("li", { class: "line" }, dot(severity), element("span", {}, sentence))),
      each.more ? element("li", { class: "sub" }, `and ${each.more} more`) : null)
    : element("p", { class: "sub" }, each.verdict),
  each.notCompared.length ? element("p", { class: "sub" }, each.notCompared.join(" ")) : null);
