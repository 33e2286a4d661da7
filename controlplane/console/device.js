// One device: what it is, what was asked of it, what it reported.

import { ask } from "./facade.js";
import { announceWork } from "./announcing.js";
import { dot, element, exact, lasted, pill, replace, when, zone } from "./elements.js";
import { changesSection } from "./changes.js";
import { nameOf, placeOf, reportedAt } from "./device_names.js";
import { working } from "./devices.js";
import { strip } from "./strip.js";
import { isBack, wishButton, wishList } from "./wishes.js";

const PAGES_MAX = 100;

// Each page holds requests and reports, newest first; `pages` grows as older ones are asked for.
export async function fetchDevice(instanceId, pages) {
  let found = null;
  let cursor = null;
  for (let page = 0; page < Math.min(pages, PAGES_MAX); page += 1) {
    const reply = await ask("device", cursor ? { instanceId, cursor } : { instanceId });
    if (found === null) found = reply;
    else {
      found.detail.requests.push(...reply.detail.requests);
      found.detail.reports.push(...reply.detail.reports);
      found.lines.push(...reply.lines);
      Object.assign(found.askers, reply.askers);
    }
    cursor = reply.detail.nextCursor;
    if (!cursor) break;
  }
  return { ...found, hasOlder: Boolean(cursor) };
}

export function showDevice(data, view, problem, actions) {
  const { detail, row, canWrite } = data;
  const { device } = row;
  announceWork(row);
  if (!document.getElementById("device-sheet"))
    view.replaceChildren(element("div", { class: "sheet", id: "device-sheet" }));
  const sheet = document.getElementById("device-sheet");
  replace(sheet,
    element("a", { href: "#/devices" }, "← All devices"),
    element("div", { class: "title" }, element("h1", {}, nameOf(device)), pill(row.state)),
    element("p", { class: "lede" }, lede(device)),
    element("dl", { class: "facts times" },
      fact("Heard", row.state === "never-seen" ? "never" : when(device.lastSeenAt)),
      fact("Working", working(row)), fact("Last reported", when(reportedAt(row)))),
    canWrite && row.state !== "revoked" ? element("div", { class: "actions" },
      askButton("network", row, true), askButton("application", row, false),
      element("button", { id: "revoke", class: "danger", type: "button" }, "Revoke")) : null,
    wishList(row, canWrite),
    row.maintenanceUntil ? element("p", { class: "sub" }, `In maintenance until ${exact(row.maintenanceUntil)}: nothing is told of it.`) : null,
    element("p", { class: "problem", role: "alert" }, problem),
    changesSection(data.changes),
    strip(data.presence, () => showDevice(data, view, problem, actions)),
    element("section", {},
      element("h2", {}, "Requests and reports"), historyTable(data),
      data.hasOlder
        ? element("button", { class: "more", id: "older", type: "button" }, "Show older ones") : null),
    element("section", {}, element("h2", {}, "Device"), facts(detail.device)),
    element("p", { class: "zone" }, `Times are in the zone of this browser, ${zone()}.`));
  sheet.onclick = (event) => {
    const button = event.target.closest("button");
    if (button?.ariaDisabled !== "true") actions[button?.id]?.();
  };
}

// What is under way is not asked for again.
function askButton(kind, row, isPrimary) {
  const open = row.requests.find((request) => request.kind === kind);
  if (!open && !isBack(row)) return wishButton(kind, row, isPrimary);
  return element("button", {
    id: `ask-${kind}`, class: isPrimary ? "primary" : null, type: "button",
    // Not disabled: a button that is loses the focus of who pressed it.
    "aria-disabled": open ? "true" : null,
  }, open ? `${kind === "network" ? "Network" : "Application"} report ${open.status} …` : `Ask for a${kind === "network" ? "" : "n"} ${kind} report`);
}

function lede(device) {
  const agent = device.appVersion ? `agent ${device.appVersion}` : "agent of unknown version";
  return `${placeOf(device)}, ${device.platform}, ${agent}${device.foreground ? ", run by a person at the machine" : ""}`;
}

const fact = (name, value, look) =>
  element("div", {}, element("dt", {}, name), element("dd", { class: look }, value));

function facts(device) {
  const rows = [
    ["Last heard", exact(device.lastSeenAt)],
    ["Enrolled", exact(device.createdAt)],
    ["Location", device.locationId],
    ["Organization", device.organizationName || device.organizationId],
    ["Install", device.legacyInstallId],
    ["Can do", device.capabilities.join(", ") || "nothing it told of"],
    ["Instance", device.instanceId, "mono"],
    ["Binding", device.bindingId, "mono"],
  ];
  if (device.revokedAt) rows.unshift(["Revoked", exact(device.revokedAt)]);
  return element("dl", { class: "facts" }, ...rows.map((row) => fact(...row)));
}

// A request and the report that answers it are one row; a report nobody asked for is its own.
function historyTable({ detail: { requests, reports }, lines, askers }) {
  const rows = [...requests.map((request) => ({ request })), ...unasked(requests, reports)];
  if (!rows.length) return element("p", { class: "empty" }, "Nothing was asked of this device yet.");
  const answers = new Map(reports.map((report) => [report.requestId, report]));
  const said = new Map(lines.flatMap((line) => [[line.reportId, line], [line.requestId || line.reportId, line]]));
  for (const row of rows) {
    row.report ||= answers.get(row.request.id);
    row.line = said.get(row.report?.reportId) || said.get(row.request?.id);
    row.asker = row.request && (askers[row.request.requestedById] || "a key that is gone");
  }
  const began = (row) => (row.request || row.report).createdAt;
  rows.sort((one, other) => began(other).localeCompare(began(one)));
  return element("table", { class: "history" },
    element("thead", {}, element("tr", {},
      ...["Report", "Status", "What it says", "When"].map((head) => element("th", { scope: "col" }, head)),
      element("th", { class: "how", scope: "col" }, "Course"))),
    element("tbody", {}, ...rows.map(historyRow)));
}

const unasked = (requests, reports) => {
  const known = new Set(requests.map((request) => request.id));
  return reports.filter((report) => !known.has(report.requestId)).map((report) => ({ report }));
};

function historyRow({ request, report, line, asker }) {
  const { kind, createdAt } = request || report;
  return element("tr", {},
    element("td", { class: "kind" }, kind),
    element("td", {}, pill(request ? request.status : report.outcome)),
    element("td", { class: "says" }, line
      ? element("a", { class: "line", href: `#/report/${line.reportId}` }, dot(line.tone || "muted"), element("span", {}, line.headline || "Open"))
      : ""),
    element("td", { class: "when" }, when(createdAt)),
    element("td", { class: "how" }, [asker && `asked by ${asker}`, ...course(request), ...circumstances(request, report)].filter(Boolean).join(", ")));
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
