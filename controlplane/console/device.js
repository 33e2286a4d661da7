// One device: what it is, what was asked of it, what it reported.

import { call } from "./facade.js";
import { element, exact, lasted, pill, replace, stateOf, when } from "./elements.js";
import { nameOf } from "./devices.js";

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
    facts(device),
    element("section", {}, element("h2", {}, "Reports"), reportTable(reports)),
    element("section", {}, element("h2", {}, "Requests"), requestTable(requests, reports)),
    detail.hasOlder
      ? element("button", { class: "more", id: "older", type: "button" }, "Show older ones") : null);
  sheet.onclick = (event) => actions[event.target.closest("button")?.id]?.();
}

function newSheet() {
  const sheet = element("div", { class: "sheet", id: "device-sheet" });
  document.getElementById("detail").replaceChildren(sheet);
  return sheet;
}

function lede(device) {
  const agent = device.appVersion ? `agent ${device.appVersion}` : "agent of unknown version";
  return `${device.platform}, ${agent}${device.foreground ? ", run by a person at the machine" : ""}`;
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

function reportTable(reports) {
  if (!reports.length) return element("p", { class: "empty" }, "None yet.");
  return table(["Kind", "Outcome", "Received", ["How", "how"], ""], reports.map((report) => [
    element("td", {}, report.kind),
    element("td", {}, pill(report.outcome)),
    element("td", { class: "when" }, when(report.createdAt)),
    element("td", { class: "how" }, howReported(report)),
    element("td", { class: "act" }, element("a", { href: `#/report/${report.reportId}` }, "Open")),
  ]));
}

function howReported(report) {
  const parts = [report.requestId ? "asked for" : "by itself"];
  if (report.failureReason) parts.push(report.failureReason.replace("-", " "));
  if (report.trackerStatus !== "disabled") parts.push(`tracker ${report.trackerStatus}`);
  return parts.join(", ");
}

function requestTable(requests, reports) {
  if (!requests.length) return element("p", { class: "empty" }, "None yet.");
  const answers = new Map(reports.map((report) => [report.requestId, report.reportId]));
  return table(["Kind", "Status", "Asked", ["Course", "how"], ""], requests.map((request) => [
    element("td", {}, request.kind),
    element("td", {}, pill(request.status)),
    element("td", { class: "when" }, when(request.createdAt)),
    element("td", { class: "how" }, course(request)),
    element("td", { class: "act" }, answers.has(request.id)
      ? element("a", { href: `#/report/${answers.get(request.id)}` }, "Open") : ""),
  ]));
}

function course(request) {
  const parts = [];
  if (request.receivedAt) parts.push(`received after ${lasted(request.createdAt, request.receivedAt)}`);
  if (request.startedAt && request.finishedAt) parts.push(`ran ${lasted(request.startedAt, request.finishedAt)}`);
  if (!parts.length && request.status === "queued") return "waiting for the device";
  if (!parts.length && request.status === "expired") return "the device did not take it";
  return parts.join(", ");
}

function table(heads, rows) {
  return element("table", {},
    element("thead", {}, element("tr", {}, ...heads.map((head) => Array.isArray(head)
      ? element("th", { class: head[1] }, head[0]) : element("th", {}, head)))),
    element("tbody", {}, ...rows.map((cells) => element("tr", {}, ...cells))));
}
