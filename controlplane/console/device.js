// One device: its status, its requests and its reports.

import { callConsole } from "./facade.js";
import { announceWork } from "./announcements.js";
import { byId, dot, element, exactTime, formatDuration, pill, replace, timeAgo, browserZone } from "./elements.js";
import { changesSection } from "./changes.js";
import { locationOf, nameOf, reportedAt } from "./device_names.js";
import { busyWith, reportLines } from "./devices.js";
import { incidentList } from "./incidents.js";
import { timelineSection } from "./timeline.js";
import { isOnline, pendingButton, pendingList } from "./pending_requests.js";

const PAGES_MAX = 100;

// Each page contains requests and reports, newest first. `pages` is the number of pages to fetch.
export async function fetchDevice(instanceId, pages) {
  let merged = null;
  let cursor = null;
  for (let page = 0; page < Math.min(pages, PAGES_MAX); page += 1) {
    const reply = await callConsole("device", cursor ? { instanceId, cursor } : { instanceId });
    if (merged === null) merged = reply;
    else {
      merged.detail.requests.push(...reply.detail.requests);
      merged.detail.reports.push(...reply.detail.reports);
      merged.lines.push(...reply.lines);
      Object.assign(merged.requesters, reply.requesters);
    }
    cursor = reply.detail.nextCursor;
    if (!cursor) break;
  }
  return { ...merged, hasOlder: Boolean(cursor) };
}

export function showDevice(data, view, problem, actions) {
  const { detail, row, canWrite } = data;
  const { device } = row;
  announceWork(row);
  if (!byId("device-sheet"))
    view.replaceChildren(element("div", { class: "sheet", id: "device-sheet" }));
  const sheet = byId("device-sheet");
  replace(sheet,
    element("a", { href: "#/devices" }, "← All devices"),
    element("div", { class: "title" }, element("h1", {}, nameOf(device)), pill(row.health), row.state === "closed" || row.state === "maintenance" ? element("span", { class: "sub" }, row.state) : null),
    element("p", { class: "lede" }, describeDevice(device)),
    element("dl", { class: "facts times" },
      fact("Last seen", row.state === "never-connected" ? "never" : timeAgo(device.lastSeenAt)),
      fact("Busy", busyWith(row)), fact("Last reported", timeAgo(reportedAt(row)))),
    row.reports.length ? element("div", { class: "newest" }, ...reportLines(row)) : null,
    canWrite && row.state !== "revoked" ? element("div", { class: "actions" },
      requestButton("network", row, true), requestButton("application", row, false),
      element("button", { id: "revoke", class: "danger", type: "button" }, "Revoke")) : null,
    pendingList(row, canWrite),
    row.maintenanceUntil ? element("p", { class: "sub" }, `In maintenance until ${exactTime(row.maintenanceUntil)}: the device causes no alerts.`) : null,
    element("p", { class: "problem", role: "alert" }, problem),
    changesSection(data.changes),
    data.incidents.length ? element("section", { id: "interruptions" },
      element("h2", {}, "Interruptions of the location ", element("span", { class: "count" }, "in the last 7 days")),
      ...incidentList(data.incidents, data.incidents.length)) : null,
    timelineSection(data.timeline, () => showDevice(data, view, problem, actions)),
    element("section", {},
      element("h2", {}, "Requests and reports"), historyTable(data),
      data.hasOlder
        ? element("button", { class: "more", id: "older", type: "button" }, "Show older") : null),
    element("section", {}, element("h2", {}, "Device"), facts(detail.device)),
    element("p", { class: "zone" }, `Times are in the time zone of this browser, ${browserZone()}.`));
  sheet.onclick = (event) => {
    const button = event.target.closest("button");
    if (button?.ariaDisabled !== "true") actions[button?.id]?.();
  };
}

// The button is disabled while a request of this kind is open.
function requestButton(kind, row, isPrimary) {
  const open = row.requests.find((request) => request.kind === kind);
  if (!open && !isOnline(row)) return pendingButton(kind, row, isPrimary);
  return element("button", {
    id: `request-${kind}`, class: isPrimary ? "primary" : null, type: "button",
    // The attribute `disabled` is not used, because a disabled button loses the focus.
    "aria-disabled": open ? "true" : null,
  }, open ? `${kind === "network" ? "Network" : "Application"} report ${open.status} …` : `Request ${kind} report`);
}

function describeDevice(device) {
  const agent = device.appVersion ? `agent ${device.appVersion}` : "agent of unknown version";
  return `${locationOf(device)}, ${device.platform}, ${agent}${device.foreground ? ", started by a user at the machine" : ""}`;
}

const fact = (name, value, style) =>
  element("div", {}, element("dt", {}, name), element("dd", { class: style }, value));

function facts(device) {
  const rows = [
    ["Last seen", exactTime(device.lastSeenAt)],
    ["Enrolled", exactTime(device.createdAt)],
    ["Location", device.locationId],
    ["Organization", device.organizationName || device.organizationId],
    ["Install", device.legacyInstallId],
    ["Capabilities", device.capabilities.join(", ") || "none declared"],
    ["Instance", device.instanceId, "mono"],
    ["Binding", device.bindingId, "mono"],
  ];
  if (device.revokedAt) rows.unshift(["Revoked", exactTime(device.revokedAt)]);
  return element("dl", { class: "facts" }, ...rows.map((row) => fact(...row)));
}

// A request and its report are one row. A report has its own row if its request does not exist or is not loaded.
function historyTable({ detail: { requests, reports }, lines, requesters }) {
  const rows = [...requests.map((request) => ({ request })), ...unrequested(requests, reports)];
  if (!rows.length) return element("p", { class: "empty" }, "This device has no requests and reports yet.");
  const byRequest = new Map(reports.map((report) => [report.requestId, report]));
  // The summary line of each report, by the ids of the report and of its request.
  const lineById = new Map(lines.flatMap((line) => [[line.reportId, line], [line.requestId || line.reportId, line]]));
  for (const row of rows) {
    row.report ||= byRequest.get(row.request.id);
    row.line = lineById.get(row.report?.reportId) || lineById.get(row.request?.id);
    row.requester = row.request && (requesters[row.request.requestedById] || "a deleted key or user");
  }
  const timeOf = (row) => (row.request || row.report).createdAt;
  rows.sort((one, other) => timeOf(other).localeCompare(timeOf(one)));
  return element("table", { class: "history" },
    element("thead", {}, element("tr", {},
      ...["Report", "Status", "Result", "When"].map((head) => element("th", { scope: "col" }, head)),
      element("th", { class: "how", scope: "col" }, "Details"))),
    element("tbody", {}, ...rows.map(historyRow)));
}

const unrequested = (requests, reports) => {
  const known = new Set(requests.map((request) => request.id));
  return reports.filter((report) => !known.has(report.requestId)).map((report) => ({ report }));
};

function historyRow({ request, report, line, requester }) {
  const { kind, createdAt } = request || report;
  return element("tr", {},
    element("td", { class: "kind" }, kind),
    element("td", {}, pill(request ? request.status : report.outcome)),
    element("td", { class: "headline" }, line
      ? element("a", { class: "line", href: `#/report/${line.reportId}` }, dot(line.severity || "muted"), element("span", {}, line.headline || "Open"))
      : ""),
    element("td", { class: "when" }, timeAgo(createdAt)),
    element("td", { class: "how" }, [requester && `requested by ${requester}`, ...progress(request), ...circumstances(report)].filter(Boolean).join(", ")));
}

function progress(request) {
  if (!request) return [];
  const { createdAt, receivedAt, startedAt, finishedAt, status } = request;
  if (!receivedAt && status === "queued") return ["waiting for the device"];
  if (!receivedAt && status === "expired") return ["the device did not receive it"];
  const parts = receivedAt ? [`received after ${formatDuration(createdAt, receivedAt)}`] : [];
  if (startedAt && finishedAt) parts.push(`ran ${formatDuration(startedAt, finishedAt)}`);
  return parts;
}

function circumstances(report) {
  if (!report) return [];
  const parts = report.requestId ? [] : ["Unrequested"];
  if (report.failureReason) parts.push(report.failureReason.replace("-", " "));
  if (report.trackerStatus !== "disabled") parts.push(`tracker ${report.trackerStatus}`);
  return parts;
}
