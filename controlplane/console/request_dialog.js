// Requests reports from many devices at once, and shows the result of each device.

import { call, callConsole } from "./facade.js";
import { openDialog } from "./dialogs.js";
import { byId, element, pill, plural } from "./elements.js";
import { createPending, isOnline, isSupported } from "./pending_requests.js";
import { followRequests, resultTable } from "./request_results.js";

const DEVICES_MAX = 500;
const PARALLEL_MAX = 4;
const ATTEMPTS_MAX = 5;

export const requestAllText = (count) => count > DEVICES_MAX
  ? `Request reports from the first ${DEVICES_MAX} of ${count.toLocaleString()}`
  : `Request reports from all ${count.toLocaleString()}`;

// `rows` are the selected devices; null means all `count` devices that match `filters`.
export function openRequestDialog(rows, filters, count = rows.length) {
  const dialog = byId("request-dialog");
  const control = new AbortController();
  byId("request-devices").textContent = rows ? `${plural(rows.length, "device")} selected.` : `${requestAllText(count).replace("Request reports from", "From")} devices that match the filters.`;
  byId("request-result").textContent = "";
  byId("request-rows").replaceChildren();
  byId("request-progress").hidden = true;
  byId("request-start").hidden = false;
  byId("request-start").textContent = rows ? "Request" : requestAllText(count);
  byId("request-kinds").disabled = byId("request-start").disabled = false;
  byId("request-close").textContent = "Cancel";
  byId("request-start").onclick = async () => {
    const kind = new FormData(dialog.querySelector("form")).get("kind");
    byId("request-kinds").disabled = byId("request-start").disabled = true;
    byId("request-close").textContent = "Stop";
    let result = null;
    try {
      result = await requestFrom(rows || await fetchAll(filters, control.signal), kind, control.signal);
    } catch (error) {
      byId("request-result").textContent = error.message;
    }
    byId("request-start").hidden = true;
    byId("request-close").textContent = "Close";
    byId("request-close").focus();
    if (result) await followRequests(result.requests, result.show, control.signal);
  };
  byId("request-rows").onclick = (event) => { if (event.target.closest("a")) dialog.close(); };
  openDialog(dialog, () => control.abort());
}

async function fetchAll(filters, signal) {
  const rows = [];
  let cursor = null;
  do {
    const page = await callConsole("overview", { ...filters, size: 200, ...(cursor && { cursor }) });
    rows.push(...page.devices.filter((row) => row.state !== "revoked"));
    cursor = page.nextCursor;
  } while (cursor && rows.length < DEVICES_MAX && !signal.aborted);
  return rows.slice(0, DEVICES_MAX);
}

// Returns the created and existing requests by device, and the function that shows their results.
async function requestFrom(rows, kind, signal) {
  const summary = { requested: 0, notOnline: [], revoked: 0, existing: 0, refused: 0, stopped: 0, reason: "" };
  const { table, show } = resultTable(rows);
  byId("request-rows").replaceChildren(table);
  const requests = new Map();
  const queue = [...rows];
  const progress = byId("request-progress");
  progress.hidden = false;
  progress.max = rows.length;
  const worker = async () => {
    while (queue.length) {
      const row = queue.shift();
      const { instanceId } = row.device;
      const existing = row.requests.find((request) => request.kind === kind);
      if (signal.aborted) summary.stopped += 1;
      else if (row.state === "revoked") {
        summary.revoked += 1;
        show(instanceId, pill("revoked"));
      } else if (!isOnline(row)) {
        summary.notOnline.push(row);
        show(instanceId, pill("offline", "not online"));
      } else if (existing) {
        summary.existing += 1;
        requests.set(instanceId, existing.id);
        show(instanceId, pill(existing.status));
      } else await requestOne(instanceId, kind, summary, requests, show);
      progress.value = rows.length - queue.length;
      byId("request-result").textContent = `${rows.length - queue.length} of ${rows.length}`;
    }
  };
  await Promise.all(Array.from({ length: PARALLEL_MAX }, worker));
  if (summary.notOnline.length && byId("request-when-online").checked && !signal.aborted) {
    summary.pending = await createPending(summary.notOnline.map((row) => row.device.instanceId), kind);
    for (const { device } of summary.notOnline)
      if (isSupported(kind, device)) show(device.instanceId, pill("waiting"), " ", element("span", { class: "sub" }, "until the device is online"));
      else show(device.instanceId, element("span", { class: "problem" }, `The device does not support ${kind} reports.`));
  }
  byId("request-result").textContent = describe(summary);
  return { requests, show };
}

async function requestOne(instanceId, kind, summary, requests, show) {
  for (let attempt = 1; ; attempt += 1) {
    try {
      const { requestId } = await call("createRequest", { instanceId, kind });
      summary.requested += 1;
      requests.set(instanceId, requestId);
      show(instanceId, pill("queued"));
      return;
    } catch (error) {
      if (!error.waitSeconds || attempt === ATTEMPTS_MAX) {
        summary.refused += 1;
        summary.reason = error.message;
        show(instanceId, element("span", { class: "problem" }, error.message));
        return;
      }
      await new Promise((resolve) => setTimeout(resolve, error.waitSeconds * 1000));
    }
  }
}

function describe({ requested, notOnline, pending, revoked, existing, refused, stopped, reason }) {
  const parts = [`Reports requested from ${plural(requested, "device")}`];
  if (existing) parts.push(`${existing} already had a request`);
  if (notOnline.length && !pending) parts.push(`${notOnline.length} skipped because they are not online`);
  const waiting = pending ? pending.created + pending.existing : 0;
  if (waiting) parts.push(`${waiting} wait until they are online`);
  if (pending?.refused) parts.push(`${pending.refused} refused because they are revoked or do not support this report`);
  if (revoked) parts.push(`${revoked} skipped because they are revoked`);
  if (refused) parts.push(`${refused} refused (${reason})`);
  if (stopped) parts.push(`${stopped} skipped because you stopped`);
  return `${parts.join(", ")}.`;
}
