// The results of requests to many devices: a row for each device, which changes until its report has arrived.

import { readChanges } from "./facade.js";
import { dot, element, pill, replace } from "./elements.js";
import { locationOf, nameOf } from "./device_names.js";

const STREAMED_MAX = 200;
const RETRY_MS = 3000;

// Returns the table of these devices, and a function that sets the result of one device.
export function resultTable(rows) {
  const cells = new Map();
  const entry = ({ device }) => {
    const cell = element("td", {}, "–");
    cells.set(device.instanceId, cell);
    return element("tr", {},
      element("th", { scope: "row" }, nameOf(device), element("span", { class: "sub" }, locationOf(device))), cell);
  };
  const table = element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Results" },
    element("table", { class: "results" },
      element("thead", {}, element("tr", {}, element("th", { scope: "col" }, "Device"), element("th", { scope: "col" }, "Result"))),
      element("tbody", {}, ...rows.map(entry))));
  return { table, show: (instanceId, ...content) => replace(cells.get(instanceId), ...content) };
}

// Shows the state of these requests until each has ended. `requests` maps the id of each device to the id of its request.
export async function followRequests(requests, show, signal) {
  const ids = [...requests.keys()];
  const parts = [];
  for (let first = 0; first < ids.length; first += STREAMED_MAX) parts.push(ids.slice(first, first + STREAMED_MAX));
  await Promise.all(parts.map((part) => followPart(part, requests, show, signal)));
}

async function followPart(ids, requests, show, signal) {
  const control = new AbortController();
  signal.addEventListener("abort", () => control.abort());
  while (!signal.aborted && ids.some((id) => requests.has(id))) {
    try {
      for await (const [event, row] of readChanges({ instanceIds: ids }, control.signal)) {
        if (event === "device") showRequest(row, requests, show);
        if (!ids.some((id) => requests.has(id))) break;
      }
    } catch (error) {
      if (error.status === 401) break;  // the next load of the page shows the form to sign in
      // After any other error, the stream is opened again, as long as the dialog is open.
    }
    if (!signal.aborted && ids.some((id) => requests.has(id))) await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
  }
  control.abort();
}

function showRequest({ device: { instanceId }, requests: open, reports }, requests, show) {
  const id = requests.get(instanceId);
  if (!id) return;
  const request = open.find((each) => each.id === id);
  if (request) return show(instanceId, pill(request.status));
  const report = reports.find((each) => each.requestId === id);
  requests.delete(instanceId);
  show(instanceId, report
    ? element("a", { class: "line", href: `#/report/${report.reportId}` }, dot(report.severity || "muted"), element("span", {}, report.headline || report.outcome))
    : element("span", {}, "Ended without a report."));
}
