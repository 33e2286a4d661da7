// Creates, shows and cancels requests that wait until an offline device is online.

import { callConsole } from "./facade.js";
import { element, exactTime, pill, timeAgo } from "./elements.js";

const WAIT_MS = 3 * 86400000;  // three days
const DEVICES_MAX = 500;
const KINDS = ["network", "application"];
export const isOnline = (row) => row.state === "online";

// If the capabilities of a device contain none of the kinds, the service accepts requests of every kind.
export const isSupported = (kind, { capabilities }) => capabilities.includes(kind) || !KINDS.some((each) => capabilities.includes(each));

// For the list of devices: summarizes the pending requests of a device that has no open request.
export function pendingSummary({ pendingRequests }) {
  const [first] = pendingRequests || [];
  if (!first) return null;
  const kinds = pendingRequests.map((each) => each.kind).join(", ");
  const date = new Date(first.until).toLocaleDateString(undefined, { day: "numeric", month: "short" });
  return element("span", { title: first.requestedBy ? `requested by ${first.requestedBy}` : null },
    pill("waiting"), " ", element("span", { class: "sub" }, `${kinds}, until ${date}`));
}

// Returns how many devices have a new pending request, how many already had one, and how many were refused. A device is
// refused if it is revoked or does not support the kind.
export async function createPending(instanceIds, kind) {
  const counts = { created: 0, existing: 0, refused: 0 };
  const until = new Date(Date.now() + WAIT_MS).toISOString();
  for (let first = 0; first < instanceIds.length; first += DEVICES_MAX) {
    const body = { kind, until, instanceIds: instanceIds.slice(first, first + DEVICES_MAX) };
    const reply = await callConsole("pending-requests", body);
    for (const name of Object.keys(counts)) counts[name] += reply[name];
  }
  return counts;
}

export const cancelPending = (row, kind) =>
  callConsole("pending-requests/cancel", { pendingRequestId: row.pendingRequests.find((each) => each.kind === kind).id });

// Returns the button that is shown instead of the request button while the device is not online.
export function pendingButton(kind, row, isPrimary) {
  const isWaiting = row.pendingRequests.some((each) => each.kind === kind);
  return element("button", {
    id: `pending-${kind}`, class: isPrimary ? "primary" : null, type: "button",
    "aria-disabled": isWaiting ? "true" : null,
  }, isWaiting ? `Waiting to request ${kind} report` : `Request ${kind} report when the device is online`);
}

export function pendingList(row, canWrite) {
  if (!row.pendingRequests.length) return null;
  return element("ul", { class: "cards pending" }, ...row.pendingRequests.map((each) => element("li", {},
    pill("waiting"),
    element("span", {}, `The ${each.kind} report is requested if the device is online before `,
      element("time", { datetime: each.until, title: exactTime(each.until) }, day(each.until)),
      each.requestedBy ? `. Requested by ${each.requestedBy}, ` : ". Requested ", timeAgo(each.createdAt)),
    canWrite ? element("button", { id: `cancel-${each.kind}`, class: "quiet", type: "button" }, "Cancel") : null)));
}

const day = (timestamp) =>
  new Date(timestamp).toLocaleString(undefined, { weekday: "short", day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" });
