// The first view: devices that need attention, shared interruptions, and the newest reports.

import { addDeviceLink, canAddDevices } from "./add_device.js";
import { callConsole } from "./facade.js";
import { byId, dot, element, pill, plural, replace, timeAgo, browserZone } from "./elements.js";
import { locationOf, nameOf } from "./device_names.js";
import { busyWith, reportLines } from "./devices.js";
import { RECENT, incidentList } from "./incidents.js";
import { membership } from "./signing_in.js";

const DEVICES_MAX = 12;
const INCIDENTS_MAX = 5;
// Every device that is not revoked is counted by exactly one tile (controlplane/devices/priority.py).
const TILES = [
  ["healthy", "Healthy", "good"], ["warning", "Warning", "warn"], ["broken", "Broken", "bad"],
  ["offline", "Offline", "bad"], ["never-connected", "Never connected", "bad"],
];
// States without a tile. A device in one of these states can also be counted by a tile.
const OTHER_STATES = [["busy", "busy"], ["closed", "closed"], ["maintenance", "in maintenance"], ["revoked", "revoked"]];

export async function fetchHome() {
  const [summary, list, shared] = await Promise.all([
    callConsole("summary"), callConsole("overview", { size: DEVICES_MAX }), callConsole("incidents", RECENT)]);
  return { summary, rows: list.devices, incidents: shared.incidents };
}

const needsAttention = ({ health }) => health !== "healthy" && health !== "revoked";

export function showHome({ summary, rows, incidents }, view) {
  // If there is no device, a user who can add one sees the guide to adding a device instead of the overview.
  if (!summary.states.all && canAddDevices()) return void location.replace("#/add-device");
  if (!byId("home")) view.replaceChildren(element("div", { class: "sheet", id: "home" }));
  const listed = rows.filter(needsAttention);
  replace(byId("home"),
    element("div", { class: "title" }, element("h1", {}, "Overview"),
      element("span", { class: "count" }, plural(summary.states.all - summary.states.revoked, "device")), addDeviceLink()),
    element("ul", { class: "tiles" }, ...TILES.map(([state, text, severity]) => tile(state, text, severity, summary.states[state]))),
    otherStates(summary.states),
    incidents.length ? interruptions(incidents) : null,
    element("div", { class: "columns" },
      element("section", {}, element("h2", {}, "Needs attention"),
        listed.length ? element("ul", { class: "cards" }, ...listed.map(card)) : element("p", { class: "empty" }, emptyText(summary)),
        listed.length === DEVICES_MAX ? element("p", { class: "more" }, element("a", { href: "#/devices" }, "All devices")) : null),
      element("div", {},
        element("section", {}, element("h2", {}, "Newest reports"),
          summary.reports.length ? element("ul", { class: "cards" }, ...summary.reports.map(report)) : element("p", { class: "empty" }, "No report yet.")),
        counts("Versions", "version", summary.versions), counts("Platforms", "platform", summary.platforms))),
    element("p", { class: "zone" }, `Times are in the time zone of this browser, ${browserZone()}.`));
}

const tile = (state, text, severity, count) => element("li", {},
  element("a", { class: `tile ${count ? severity : "none"}`, href: `#/devices?state=${state}` },
    element("strong", {}, count.toLocaleString()), element("span", {}, text)));

function otherStates(states) {
  const links = OTHER_STATES.filter(([state]) => states[state]).map(([state, text]) =>
    element("a", { href: `#/devices?state=${state}` }, `${states[state].toLocaleString()} ${text}`));
  return links.length ? element("p", { class: "sub" }, "Also: ", ...links.flatMap((link, index) => index ? [" · ", link] : [link])) : null;
}

const interruptions = (incidents) => element("section", { id: "interruptions" },
  element("h2", {}, "Interruptions at locations ", element("span", { class: "count" }, "in the last 24 hours")),
  ...incidentList(incidents, INCIDENTS_MAX),
  membership() ? element("p", { class: "more" }, element("a", { href: "#/locations" }, "Locations")) : null);

const emptyText = ({ states }) => states.all
  ? "No device needs attention."
  : `No device has enrolled yet. ${membership() ? "Ask an owner or a manager" : "Sign in with your e-mail address and password"} to add one.`;

const card = (row) => element("li", {},
  element("div", { class: "title" },
    element("a", { class: "name", href: `#/device/${row.device.instanceId}` }, nameOf(row.device)), pill(row.health),
    row.requests.length ? busyWith(row) : null),
  element("p", { class: "sub" }, `${locationOf(row.device)} · last seen `, row.state === "never-connected" ? "never" : timeAgo(row.device.lastSeenAt)),
  ...reportLines(row));

const report = (each) => element("li", {},
  element("a", { class: "line", href: `#/report/${each.reportId}` }, dot(each.severity || "muted"),
    element("span", {}, element("strong", {}, nameOf({ legacyInstallId: each.name, locationId: each.locationId })),
      ` · ${each.kind} · `, timeAgo(each.createdAt),
      element("span", { class: "sub" }, each.headline || ""))));

const counts = (title, name, values) => values.length ? element("section", {}, element("h2", {}, title),
  element("ul", { class: "counts" }, ...values.slice(0, 10).map(({ value, count }) =>
    element("li", {}, element("a", { href: `#/devices?${name}=${encodeURIComponent(value ?? "")}` }, value ?? "unknown"),
      element("span", {}, count.toLocaleString()))))) : null;
