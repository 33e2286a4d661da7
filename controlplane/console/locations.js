// The locations of an organization: names, time zones, opening hours and maintenance windows.

import { callConsole } from "./facade.js";
import { element, plural, replace } from "./elements.js";
import { openConfirmation, openForm } from "./forms.js";

const at = (id) => document.getElementById(id);
const ALWAYS = "Always open";

export const fetchLocations = () => callConsole("locations");

// Returns the names of locations by id, for forms and lists.
export async function fetchLocationNames() {
  const { locations } = await fetchLocations();
  return new Map(locations.map((each) => [each.locationId, each.name || each.locationId]));
}

export function showLocations(data, view, hooks) {
  if (!at("locations")) {
    view.replaceChildren(element("div", { class: "sheet", id: "locations" },
      element("div", { class: "heading" }, element("h1", {}, "Locations"),
        element("button", { type: "button", class: "primary", id: "add-location" }, "Add a location")),
      element("p", { class: "lede", id: "organization" }),
      element("p", { class: "problem", role: "alert", id: "account-problem" }),
      element("div", { id: "location-rows" }),
      element("section", { id: "alert-route" })));
  }
  at("add-location").hidden = !data.canAdd;
  at("add-location").onclick = () => addLocation(hooks);
  replace(at("organization"), data.organizationName || "Your organization has no name yet.", " ",
    data.canAdd ? element("button", { type: "button", class: "quiet", id: "rename-organization", onclick: () => nameOrganization(data, hooks) }, "Change the name") : null);
  replace(at("location-rows"), data.locations.length
    ? element("ul", { class: "cards people", id: "location-list" }, ...data.locations.map((each) => row(each, data, hooks)))
    : element("p", { class: "empty" }, "There are no locations yet."));
  replace(at("alert-route"), element("h2", {}, "Alerts"),
    data.alertsTo
      ? element("p", { class: "empty" }, `Alerts are sent to ${data.alertsTo}. The operator of the service sets this address.`)
      : element("p", { class: "empty" }, "No alerts are sent. The operator of the service can set an address: ", element("code", {}, "serve\u00a0--notify-url"), "."));
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
  const what = window.deviceName || (window.instanceId ? "a device" : "the whole location");
  const id = `end-${each.locationId}-${window.instanceId || "all"}-${window.since}`;
  return element("p", { class: "sub window" },
    `Maintenance of ${what} until ${localTime(window.until, each.timeZone)}${window.reason ? `: ${window.reason}` : ""} `,
    canWrite ? element("button", { type: "button", class: "quiet", id, "aria-label": `End the maintenance of ${what} at ${each.name || each.locationId}`, onclick: () => endMaintenance(window, each, what, hooks) }, "End") : null);
}

const localTime = (timestamp, timeZone) =>
  new Date(timestamp).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "long", timeZone: timeZone || "UTC" });

const nameField = (value = "") => ({ name: "name", label: "Name", required: true, maxlength: 128, value, autocomplete: "off" });

export function zoneField(value) {
  const zones = Intl.supportedValuesOf("timeZone");
  const chosen = value || Intl.DateTimeFormat().resolvedOptions().timeZone;
  return { name: "zone", label: "Time zone", value: chosen, options: [...new Set([...zones, chosen])].sort().map((zone) => [zone, zone]) };
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

async function startMaintenance({ locationId, name, timeZone }, hooks) {
  await hooks.attempt(async () => {
    const { devices } = await callConsole("overview", { location: locationId, size: 200 });
    openForm({
      title: `Maintenance of ${name || locationId}`, action: "Start",
      text: `Until the maintenance ends, offline devices cause no alert. Times are in the location's time zone, ${timeZone || "UTC"}.`,
      fields: [
        { name: "device", label: "For", options: [["", "The whole location"], ...devices.map(({ device }) => [device.instanceId, device.legacyInstallId])] },
        { name: "since", label: "From", type: "datetime-local", hint: "Empty means now." },
        { name: "until", label: "Until", type: "datetime-local", required: true },
        { name: "reason", label: "Reason", maxlength: 128, autocomplete: "off" },
      ],
    }, async ({ device, since, until, reason }) => {
      await callConsole("locations/maintenance", { locationId, instanceId: device || null, since: since || null, until, reason });
      hooks.refresh();
    }, hooks.sessionEnded);
  });
}

function endMaintenance(window, { locationId, name }, what, hooks) {
  openConfirmation({
    title: "End the maintenance?", keep: "Keep", action: "End",
    text: `All current and planned maintenance of ${what} at ${name || locationId} ends now.`,
  }, () => hooks.attempt(() => callConsole("locations/end-maintenance", { locationId, instanceId: window.instanceId })));
}
