// Requests reports from many devices at once.

import { call, callConsole } from "./facade.js";
import { openDialog } from "./dialogs.js";
import { plural } from "./elements.js";
import { createPending, isOnline } from "./pending_requests.js";

const DEVICES_MAX = 500;
const PARALLEL_MAX = 4;
const ATTEMPTS_MAX = 5;
const at = (id) => document.getElementById(id);

// `rows` are the selected devices; null means all devices that match `filters`.
export function openRequestDialog(rows, filters) {
  const dialog = at("request-dialog");
  let isStopped = false;
  at("request-devices").textContent = rows
    ? `${plural(rows.length, "device")} selected.`
    : `All devices that match the filters${filters.location ? ` at ${filters.location}` : ""}, at most ${DEVICES_MAX}.`;
  at("request-result").textContent = "";
  at("request-progress").hidden = true;
  at("request-start").hidden = false;
  at("request-kinds").disabled = at("request-start").disabled = false;
  at("request-close").textContent = "Cancel";
  at("request-start").onclick = async () => {
    const kind = new FormData(dialog.querySelector("form")).get("kind");
    at("request-kinds").disabled = at("request-start").disabled = true;
    at("request-close").textContent = "Stop";
    try {
      const devices = rows || await fetchAll(filters, () => isStopped);
      const counts = await requestAll(devices, kind, () => isStopped);
      if (counts.notOnline.length && at("request-when-online").checked && !isStopped)
        counts.pending = await createPending(counts.notOnline, kind);
      at("request-result").textContent = describe(counts);
    } catch (error) {
      at("request-result").textContent = error.message;
    }
    at("request-start").hidden = true;
    at("request-close").textContent = "Close";
    at("request-close").focus();
  };
  openDialog(dialog, () => { isStopped = true; });
}

async function fetchAll(filters, isStopped) {
  const rows = [];
  let cursor = null;
  do {
    const page = await callConsole("overview", { ...filters, size: 200, ...(cursor && { cursor }) });
    rows.push(...page.devices);
    cursor = page.nextCursor;
  } while (cursor && rows.length < DEVICES_MAX && !isStopped());
  return rows.slice(0, DEVICES_MAX);
}

async function requestAll(rows, kind, isStopped) {
  const counts = { requested: 0, notOnline: [], revoked: 0, existing: 0, refused: 0, stopped: 0, reason: "" };
  const queue = [...rows];
  const progress = at("request-progress");
  progress.hidden = false;
  progress.max = rows.length;
  const worker = async () => {
    while (queue.length) {
      const row = queue.shift();
      if (isStopped()) counts.stopped += 1;
      else if (row.state === "revoked") counts.revoked += 1;
      else if (!isOnline(row)) counts.notOnline.push(row.device.instanceId);
      else if (row.requests.some((request) => request.kind === kind)) counts.existing += 1;
      else await requestOne(row.device.instanceId, kind, counts);
      progress.value = rows.length - queue.length;
      at("request-result").textContent = `${rows.length - queue.length} of ${rows.length}`;
    }
  };
  await Promise.all(Array.from({ length: PARALLEL_MAX }, worker));
  return counts;
}

async function requestOne(instanceId, kind, counts) {
  for (let attempt = 1; ; attempt += 1) {
    try {
      await call("createRequest", { instanceId, kind });
      counts.requested += 1;
      return;
    } catch (error) {
      if (!error.waitSeconds || attempt === ATTEMPTS_MAX) {
        counts.refused += 1;
        counts.reason = error.message;
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
  if (pending) parts.push(`${pending.created + pending.existing} wait until they are online`);
  if (revoked) parts.push(`${revoked} skipped because they are revoked`);
  if (refused) parts.push(`${refused} refused (${reason})`);
  if (stopped) parts.push(`${stopped} skipped because you stopped`);
  return `${parts.join(", ")}.`;
}
