// A report: its rendered page in a sandboxed frame.

import { callConsole, call, fetchReportPage, fetchReportTable } from "./facade.js";
import { prepareMenu } from "./dialogs.js";
import { element, exactTime, pill } from "./elements.js";
import { nameOf } from "./device_names.js";
import { fileName, save } from "./downloads.js";

// The tables of each kind of report (agent/presentation/report_csv.py).
const TABLES = { network: ["hosts", "endpoints", "printers"], application: ["facts"] };

export async function fetchReport(reportId) {
  const detail = await call("reportDetail", { reportId });
  const { row } = await callConsole("device", { instanceId: detail.instanceId });
  const page = detail.payload === null ? null : await fetchReportPage(reportId);
  return { detail, page, row };
}

export function showReport(data, view, attempt) {
  const { detail, page, row } = data;
  const name = nameOf(row.device);
  view.replaceChildren(element("div", { class: "report" },
    element("div", { class: "bar" },
      element("a", { href: `#/device/${detail.instanceId}` }, `← ${name}`),
      element("h1", { class: "what" }, `${detail.kind} report of ${exactTime(detail.createdAt)}`),
      pill(detail.outcome),
      element("span", { class: "hash mono", title: "SHA-256 of the report" }, detail.payloadHash.slice(0, 16)),
      savingMenu(data, name, attempt)),
    element("p", { class: "problem", role: "alert", id: "report-problem" }),
    page === null ? emptyReport(detail) : frame(page, name)));
}

function savingMenu({ detail, page }, name, attempt) {
  const nameFor = (extension, ...parts) => `${fileName([name, detail.kind, ...parts, detail.createdAt.slice(0, 19)])}.${extension}`;
  const item = (id, text, action) => element("button", { type: "button", id, onclick: () => {
    menu.open = false;
    menu.firstChild.focus();
    attempt(action);
  } }, text);
  const tables = page === null ? [] : TABLES[detail.kind];
  const menu = element("details", { class: "menu", id: "saving" },
    element("summary", {}, "Save as"),
    element("div", {},
      page === null ? null : item("save-page", "Page (HTML)", () => save(page, "text/html", nameFor("html"))),
      item("save-report-json", "Report (JSON)", () => save(JSON.stringify(detail, null, 2), "application/json", nameFor("json"))),
      ...tables.map((table) => item(`save-${table}`, `Table of ${table} (CSV)`, async () =>
        save(await fetchReportTable(detail.id, table), "text/csv", nameFor("csv", table))))));
  prepareMenu(menu);
  return menu;
}

function frame(page, name) {
  const node = element("iframe", {
    sandbox: "", title: `Report of ${name}`, referrerpolicy: "no-referrer", "aria-busy": "true",
    onload: () => node.removeAttribute("aria-busy"),
  });
  node.srcdoc = page;
  return node;
}

function emptyReport(detail) {
  const reason = detail.failureReason ? `: ${detail.failureReason.replace("-", " ")}` : "";
  const text = detail.outcome === "failed" ? "The device could not report anything" : "The report has no content that can be shown";
  return element("div", { class: "sheet" }, element("p", { class: "empty" }, `${text}${reason}.`));
}
