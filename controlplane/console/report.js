// One report as the page it is rendered to, in a frame that may do nothing. Tells whose it is.

import { call, reportPage } from "./facade.js";
import { element, exact, pill } from "./elements.js";

export async function showReport(reportId, isWanted) {
  const detail = await call("reportDetail", { reportId });
  const page = detail.payload === null ? null : await reportPage(reportId);
  if (!isWanted()) return null;
  document.getElementById("detail").replaceChildren(element("div", { class: "report" },
    element("div", { class: "bar" },
      element("a", { href: `#/device/${detail.instanceId}` }, "← Device"),
      element("span", { class: "what" }, `${detail.kind} report of ${exact(detail.createdAt)}`),
      pill(detail.outcome),
      element("span", { class: "hash mono", title: "SHA-256 of the report" }, detail.payloadHash.slice(0, 16)),
      page === null ? null : element("button", { type: "button", onclick: () => save(page, detail) }, "Save")),
    page === null ? without(detail) : frame(page)));
  return detail.instanceId;
}

function frame(page) {
  const made = element("iframe", { sandbox: "", title: "Report", referrerpolicy: "no-referrer" });
  made.srcdoc = page;
  return made;
}

function without(detail) {
  const reason = detail.failureReason ? `: ${detail.failureReason.replace("-", " ")}` : "";
  return element("div", { class: "sheet" },
    element("p", { class: "empty" }, `The device could report nothing${reason}.`));
}

function save(page, detail) {
  const url = URL.createObjectURL(new Blob([page], { type: "text/html" }));
  element("a", { href: url, download: `${detail.kind}-report-${detail.id}.html` }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
}
