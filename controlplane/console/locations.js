// The locations of an organization: names, time zones, opening hours, maintenance windows and alerts.

import { callConsole } from "./facade.js";
import { byId, element, plural, replace } from "./elements.js";
import { openConfirmation, openForm, showSecret } from "./forms.js";
import { isOwner } from "./signing_in.js";

const ALWAYS = "Always open";
const SUGGESTED_MAX = 50;
// The largest page size of the service. An entered device name is searched among up to this many
// devices. At most SUGGESTED_MAX of these devices are suggested.
const SEARCHED_MAX = 200;

export const fetchLocations = () => callConsole("locations");

// `webhook` is null unless the user may change the webhook for alerts.
export async function fetchLocationsPage() {
  const [data, webhook] = await Promise.all([fetchLocations(), isOwner() ? callConsole("alert-webhook") : null]);
  return { ...data, webhook };
}

// Returns the names of locations by id, for forms and lists.
export async function fetchLocationNames() {
  const { locations } = await fetchLocations();
  return new Map(locations.map((each) => [each.locationId, each.name || each.locationId]));
}

export function showLocations(data, view, hooks) {
  if (!byId("locations")) {
    view.replaceChildren(element("div", { class: "sheet", id: "locations" },
      element("div", { class: "heading" }, element("h1", {}, "Locations"),
        element("button", { type: "button", class: "primary", id: "add-location" }, "Add a location")),
      element("p", { class: "lede", id: "organization" }),
      element("p", { class: "problem", role: "alert", id: "account-problem" }),
      element("div", { id: "location-rows" }),
      element("section", { id: "alert-route" })));
  }
  byId("add-location").hidden = !data.canAdd;
  byId("add-location").onclick = () => addLocation(hooks);
  replace(byId("organization"), data.organizationName || "Your organization has no name yet.", " ",
    data.canAdd ? element("button", { type: "button", class: "quiet", id: "rename-organization", onclick: () => nameOrganization(data, hooks) }, "Change the name") : null);
  replace(byId("location-rows"), data.locations.length
    ? element("ul", { class: "cards people", id: "location-list" }, ...data.locations.map((each) => row(each, data, hooks)))
    : element("p", { class: "empty" }, "There are no locations yet."));
  replace(byId("alert-route"), ...alerts(data, hooks));
}

function alerts({ alertsTo, webhook }, hooks) {
  const host = webhook?.host;
  const texts = {
    organization: `Alerts are sent to ${host || "the webhook of your organization"}.`,
    operator: "Alerts are sent to the operator of the service.",
  };
  const change = webhook ? "" : " Owners of the organization can set a webhook.";
  return [
    element("div", { class: "heading" }, element("h2", {}, "Alerts"),
      webhook ? element("div", { class: "acts" },
        element("button", { type: "button", id: "set-webhook", onclick: () => setWebhook(hooks) }, host ? "Change the webhook" : "Set a webhook"),
        host ? element("button", { type: "button", class: "danger", id: "remove-webhook", onclick: () => removeWebhook(host, hooks) }, "Remove") : null) : null),
    element("p", { class: "empty" }, texts[alertsTo] || `No alerts are sent.${change}`),
  ];
}

function setWebhook(hooks) {
  openForm({
    title: "Webhook for alerts", action: "Save",
    text: "The service sends each alert of your organization to this address, for example to a chat channel or an incident tool.",
    fields: [{ name: "url", label: "Address", type: "url", required: true, maxlength: 2048, placeholder: "https://", autocomplete: "off", spellcheck: "false", hint: "An https address on the public internet. It replaces the current webhook." }],
  }, async ({ url }) => {
    const { host, secret } = await callConsole("alert-webhook/set", { url });
    hooks.refresh();
    return () => showSecret({
      title: "The secret of the webhook", value: secret,
      text: `${host} can verify with this secret that an alert comes from this service. A chat does not need it. Copy the secret now: it is not displayed again.`,
    });
  }, hooks.sessionEnded);
}

function removeWebhook(host, hooks) {
  openConfirmation({
    title: "Remove the webhook?", keep: "Keep", action: "Remove",
    text: `Alerts are no longer sent to ${host}.`,
  }, () => hooks.attempt(() => callConsole("alert-webhook/remove")));
}

function row(each, { canWrite }, hooks) {
  const name = each.name || each.locationId;
  const button = (id, text, label, act) => element("button", { type: "button", id: `${id}-${each.locationId}`, "aria-label": `${label} ${name}`, onclick: act }, text);
  return element("li", {},
    element("div", {},
      element("span", { class: "name" }, name),
      element("p", { class: "sub" }, [each.name && each.locationId, plural(each.deviceCount, "device"), each.timeZone || "no time zone"].filter(Boolean).join(" · ")),
      element("p", { class: "sub" }, each.openingHours ? `Open ${each.openingHours.join(", ")}` : ALWAYS),
      ...each.maintenance.map((window) => maintenance(window, each, canWrite, hooks))),
    canWrite ? element("div", { class: "acts" },
      button("rename", "Rename", "Rename", () => rename(each, hooks)),
      button("hours", "Opening hours", "Opening hours of", () => editHours(each, hooks)),
      button("maintain", "Maintenance", "Maintenance of", () => startMaintenance(each, hooks))) : null);
}

function maintenance(window, each, canWrite, hooks) {
  const subject = window.deviceName || (window.instanceId ? "a device" : "the whole location");
  const id = `end-${each.locationId}-${window.instanceId || "all"}-${window.since}`;
  return element("p", { class: "sub window" },
    `Maintenance of ${subject} until ${localTime(window.until, each.timeZone)}${window.reason ? `: ${window.reason}` : ""} `,
    canWrite ? element("button", { type: "button", class: "quiet", id, "aria-label": `End the maintenance of ${subject} at ${each.name || each.locationId}`, onclick: () => endMaintenance(window, each, subject, hooks) }, "End") : null);
}

const localTime = (timestamp, timeZone) =>
  new Date(timestamp).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "long", timeZone: timeZone || "UTC" });

const nameField = (value = "") => ({ name: "name", label: "Name", required: true, maxlength: 128, value, autocomplete: "off" });

export function zoneField(value) {
  const zones = Intl.supportedValuesOf("timeZone");
  const initialZone = value || Intl.DateTimeFormat().resolvedOptions().timeZone;
  return { name: "zone", label: "Time zone", value: initialZone, options: [...new Set([...zones, initialZone])].sort().map((zone) => [zone, zone]) };
}

function addLocation(hooks) {
  openForm({ title: "Add a location", action: "Add", fields: [nameField(), zoneField()] }, async ({ name, zone }) => {
    await callConsole("locations/add", { locationId: null, name, timeZone: zone });
    hooks.refresh();
  }, hooks.sessionEnded);
}

function nameOrganization(data, hooks) {
  openForm({ title: "Name of the organization", action: "Save", fields: [nameField(data.organizationName || "")] }, async ({ name }) => {
    await callConsole("locations/name-organization", { name });
    hooks.refresh();
  }, hooks.sessionEnded);
}

function rename({ locationId, name }, hooks) {
  openForm({ title: `Name of ${name || locationId}`, action: "Save", fields: [nameField(name || "")] }, async (values) => {
    await callConsole("locations/name", { locationId, name: values.name });
    hooks.refresh();
  }, hooks.sessionEnded);
}

function editHours({ locationId, name, timeZone, openingHours }, hooks) {
  openForm({
    title: `Opening hours of ${name || locationId}`, action: "Save",
    text: "Outside these hours, an offline device causes no alert.",
    fields: [
      zoneField(timeZone),
      { name: "hours", label: "Opening hours", type: "lines", rows: 4, value: (openingHours || []).join("\n"), hint: "One line for each period, such as Mon-Fri 08:00-22:00 or Sat 10:00-02:00. Empty means always open." },
    ],
  }, async ({ zone, hours }) => {
    const lines = hours.split("\n").map((line) => line.trim()).filter(Boolean);
    await callConsole("locations/hours", { locationId, timeZone: zone, openingHours: lines.length ? lines : null });
    hooks.refresh();
  }, hooks.sessionEnded);
}

function startMaintenance({ locationId, name, timeZone }, hooks) {
  const find = (text) => findDevices(locationId, text);
  openForm({
    title: `Maintenance of ${name || locationId}`, action: "Start",
    text: `Devices in maintenance cause no alerts. Times are in the location's time zone, ${timeZone || "UTC"}.`,
    fields: [
      { name: "device", label: "Device", maxlength: 128, autocomplete: "off", spellcheck: "false", hint: "Empty means the whole location.", suggest: async (text) => [...(await find(text)).keys()].slice(0, SUGGESTED_MAX) },
      { name: "since", label: "From", type: "datetime-local", hint: "Empty means now." },
      { name: "until", label: "Until", type: "datetime-local", required: true },
      { name: "reason", label: "Reason", maxlength: 128, autocomplete: "off" },
    ],
  }, async ({ device, since, until, reason }) => {
    const deviceName = device.trim();
    const instanceId = deviceName ? (await find(deviceName)).get(deviceName) : null;
    if (instanceId === undefined) throw new Error(`There is no device named ${deviceName} at this location. Choose one from the list.`);
    await callConsole("locations/maintenance", { locationId, instanceId, since: since || null, until, reason });
    hooks.refresh();
  }, hooks.sessionEnded);
}

// Returns the ids of devices by name. If several devices have the same name, their ids are added to
// the names.
async function findDevices(locationId, text) {
  const search = text.replace(/ \([0-9a-f-]{36}\)$/, "");
  const { devices } = await callConsole("overview", { location: locationId, size: SEARCHED_MAX, ...(search && { search }) });
  const all = devices.map(({ device }) => device);
  const isAmbiguous = ({ legacyInstallId }) => all.filter((each) => each.legacyInstallId === legacyInstallId).length > 1;
  return new Map(all.map((each) => [isAmbiguous(each) ? `${each.legacyInstallId} (${each.instanceId})` : each.legacyInstallId, each.instanceId]));
}

function endMaintenance(window, { locationId, name }, subject, hooks) {
  openConfirmation({
    title: "End the maintenance?", keep: "Keep", action: "End",
    text: `All current and planned maintenance of ${subject} at ${name || locationId} ends now.`,
  }, () => hooks.attempt(() => callConsole("locations/end-maintenance", { locationId, instanceId: window.instanceId })));
}
