// One device: what it is, what was asked of it, what it reported.

import { call } from "./facade.js";
import { element, exact, lasted, pill, replace, stateOf, when } from "./elements.js";
import { nameOf, placeOf } from "./devices.js";

const PAGES_MAX = 100;

// Each page holds requests and reports, newest first; `pages` grows as older ones are asked for.
export async function fetchDevice(instanceId, pages) {
  let detail = null;
  let cursor = null;
  for (let page = 0; page < Math.min(pages, PAGES_MAX); page += 1) {
    const reply = await call("deviceDetail", cursor ? { instanceId, cursor } : { instanceId });
    if (detail === null) detail = reply;
    else {
      detail.requests.push(...reply.requests);
      detail.reports.push(...reply.reports);
    }
    cursor = reply.nextCursor;
    if (!cursor) break;
  }
  return { ...detail, hasOlder: Boolean(cursor) };
}

export function showDevice(detail, problem, actions) {
  const { device, requests, reports } = detail;
  const state = stateOf(device);
  const sheet = document.getElementById("device-sheet") || newSheet();
  replace(sheet,
    element("a", { class: "back", href: "#/" }, "← All devices"),
    element("div", { class: "title" }, element("h1", {}, nameOf(device)), pill(state)),
    element("p", { class: "lede" }, lede(device)),
    element("div", { class: "actions" },
      element("button", { id: "ask-network", class: "primary", type: "button", disabled: state === "revoked" },
        "Ask for a network report"),
      element("button", { id: "ask-application", type: "button", disabled: state === "revoked" },
        "Ask for an application report"),
      element("button", { id: "revoke", class: "danger", type: "button", disabled: state === "revoked" }, "Revoke")),
    element("p", { class: "problem", role: "alert" }, problem),
    element("section", {},
      element("h2", {}, "Requests and reports"), historyTable(requests, reports),
      detail.hasOlder
        ? element("button", { class: "more", id: "older", type: "button" }, "Show older ones") : null),
    element("section", {}, element("h2", {}, "Device"), facts(device)));
  sheet.onclick = (event) => actions[event.target.closest("button")?.id]?.();
}

function newSheet() {
  const sheet = element("div", { class: "sheet", id: "device-sheet" });
  document.getElementById("detail").replaceChildren(sheet);
  return sheet;
}

function lede(device) {
  const agent = device.appVersion ? `agent ${device.appVersion}` : "agent of unknown version";
  return `${placeOf(device)}, ${device.platform}, ${agent}${device.foreground ? ", run by a person at the machine" : ""}`;
}

function facts(device) {
  const rows = [
    ["Last seen", exact(device.lastSeenAt)],
    ["Enrolled", exact(device.createdAt)],
    ["Location", device.locationId],
    ["Organization", device.organizationName || device.organizationId],
    ["Install", device.legacyInstallId],
    ["Can do", device.capabilities.join(", ") || "nothing it told of"],
    ["Instance", device.instanceId, "mono"],
    ["Binding", device.bindingId, "mono"],
  ];
  if (device.revokedAt) rows.unshift(["Revoked", exact(device.revokedAt)]);
  return element("dl", { class: "facts" }, ...rows.map(([name, value, look]) =>
    element("div", {}, element("dt", {}, name), element("dd", { class: look }, value))));
}

// A request and the report that answers it are one row; a report nobody asked for is its own.
function historyTable(requests, reports) {
  const rows = [...requests.map((request) => ({ request })), ...unasked(requests, reports)];
  if (!rows.length) return element("p", { class: "empty" }, "Nothing was asked of this device yet.");
  const answers = new Map(reports.map((report) => [report.requestId, report]));
  for (const row of rows) row.report ||= answers.get(row.request.id);
  const began = (row) => (row.request || row.report).createdAt;
  rows.sort((one, other) => began(other).localeCompare(began(one)));
  return element("table", {},
    element("thead", {}, element("tr", {},
      ...["Report", "Status", "When"].map((head) => element("th", {}, head)),
      element("th", { class: "how" }, "Course"), element("th"))),
    element("tbody", {}, ...rows.map(historyRow)));
}

const unasked = (requests, reports) => {
  const known = new Set(requests.map((request) => request.id));
  return reports.filter((report) => !known.has(report.requestId)).map((report) => ({ report }));
};

function historyRow({ request, report }) {
  const { kind, createdAt } = request || report;
  return element("tr", {},
    element("td", { class: "kind" }, kind),
    element("td", {}, pill(request ? request.status : report.outcome)),
    element("td", { class: "when" }, when(createdAt)),
    element("td", { class: "how" }, [...course(request), ...circumstances(request, report)].join(", ")),
    element("td", { class: "act" },
      report ? element("a", { href: `#/report/${report.reportId}` }, "Open") : ""));
}

function course(request) {
  if (!request) return [];
  const { createdAt, receivedAt, startedAt, finishedAt, status } = request;
  if (!receivedAt && status === "queued") return ["waiting for the device"];
  if (!receivedAt && status === "expired") return ["the device did not take it"];
  const parts = receivedAt ? [`taken after ${lasted(createdAt, receivedAt)}`] : [];
  if (startedAt && finishedAt) parts.push(`ran ${lasted(startedAt, finishedAt)}`);
  return parts;
}

function circumstances(request, report) {
  if (!report) return [];
  const parts = report.requestId ? [] : ["made by itself"];
  if (report.failureReason) parts.push(report.failureReason.replace("-", " "));
  if (report.trackerStatus !== "disabled") parts.push(`tracker ${report.trackerStatus}`);
  return parts;
}
