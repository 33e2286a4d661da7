// One report as the page it is rendered to, in a frame that may do nothing.

import { ask, call, reportPage } from "./facade.js";
import { element, exact, pill } from "./elements.js";
import { nameOf } from "./devices.js";
import { fileName, save } from "./saving.js";

export async function fetchReport(reportId) {
  const detail = await call("reportDetail", { reportId });
  const { row } = await ask("device", { instanceId: detail.instanceId });
  const page = detail.payload === null ? null : await reportPage(reportId);
  return { detail, page, row };
}

export function showReport({ detail, page, row }, view) {
  const name = nameOf(row.device);
  const saved = (kind) => `${fileName([name, detail.kind, detail.createdAt.slice(0, 19)])}.${kind}`;
  view.replaceChildren(element("div", { class: "report" },
    element("div", { class: "bar" },
      element("a", { href: `#/device/${detail.instanceId}` }, `← ${name}`),
      element("h1", { class: "what" }, `${detail.kind} report of ${exact(detail.createdAt)}`),
      pill(detail.outcome),
      element("span", { class: "hash mono", title: "SHA-256 of the report" }, detail.payloadHash.slice(0, 16)),
      page === null ? null : element("button", { type: "button", onclick: () => save(page, "text/html", saved("html")) }, "Save page"),
      element("button", { type: "button", onclick: () => save(JSON.stringify(detail, null, 2), "application/json", saved("json")) }, "Save JSON")),
    page === null ? without(detail) : frame(page, name)));
}

function frame(page, name) {
  const made = element("iframe", { sandbox: "", title: `Report of ${name}`, referrerpolicy: "no-referrer" });
  made.srcdoc = page;
  return made;
}

function without(detail) {
  const reason = detail.failureReason ? `: ${detail.failureReason.replace("-", " ")}` : "";
  return element("div", { class: "sheet" },
    element("p", { class: "empty" }, `The device could report nothing${reason}.`));
}
