// The list of devices on the left.

import { call } from "./facade.js";
import { ago, dot, element, replace, stateOf } from "./elements.js";

const PAGES_MAX = 50;
const SHOWN_MAX = 500;
const ORDER = { online: 0, offline: 1, revoked: 2 };

export async function fetchDevices() {
  const devices = [];
  let cursor = null;
  for (let page = 0; page < PAGES_MAX; page += 1) {
    const reply = await call("listDevices", cursor ? { cursor } : {});
    devices.push(...reply.devices);
    cursor = reply.nextCursor;
    if (!cursor) return { devices, isCut: false };
  }
  return { devices, isCut: true };
}

export function showDevices({ devices, isCut }, words, current) {
  const wanted = devices.filter((device) => matches(device, words)).sort(byState);
  const shown = wanted.slice(0, SHOWN_MAX);
  replace(document.getElementById("device-list"), ...shown.map((device) => entry(device, current)));
  document.getElementById("count").textContent = summary(devices, wanted, shown, isCut);
}

// An install id that nobody chose is but a number (agent/presentation/machine_name.py).
const NAMES_NOTHING = /^(install-)?[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

export const placeOf = (device) => device.locationName || device.locationId;
export const nameOf = (device) =>
  NAMES_NOTHING.test(device.legacyInstallId) ? placeOf(device) : device.legacyInstallId;

function entry(device, current) {
  const state = stateOf(device);
  const isCurrent = device.instanceId === current;
  return element("li", {},
    element("a", { href: `#/device/${device.instanceId}`, "aria-current": isCurrent ? "true" : null },
      dot(state),
      element("span", { class: "name" }, nameOf(device)),
      element("span", { class: "seen" }, state === "online" ? "online" : ago(device.lastSeenAt)),
      element("span", { class: "sub" }, `${device.platform} · ${placeOf(device)}`)));
}

function summary(devices, wanted, shown, isCut) {
  const online = devices.filter((device) => stateOf(device) === "online").length;
  const total = `${devices.length}${isCut ? "+" : ""}`;
  const text = `${total} ${devices.length === 1 ? "device" : "devices"}, ${online} online`;
  if (shown.length < wanted.length) return `${text}; the first ${shown.length} are shown`;
  return wanted.length < devices.length ? `${text}; ${wanted.length} found` : text;
}

function matches(device, words) {
  const text = [
    placeOf(device), device.locationId, device.instanceId, device.legacyInstallId, device.platform,
    stateOf(device),
  ].join(" ").toLowerCase();
  return words.toLowerCase().split(/\s+/).every((word) => text.includes(word));
}

function byState(one, other) {
  return ORDER[stateOf(one)] - ORDER[stateOf(other)] || nameOf(one).localeCompare(nameOf(other))
    || one.instanceId.localeCompare(other.instanceId);
}
