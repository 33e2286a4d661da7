// The list of devices: filters, rows, and actions on several devices.

import { addDeviceLink } from "./add_device.js";
import { callConsole } from "./facade.js";
import { byId, dot, element, pill, plural, replace, timeAgo, browserZone } from "./elements.js";
import { requestAllText, openRequestDialog } from "./request_dialog.js";
import { locationOf, nameOf, reportedAt } from "./device_names.js";
import { saveList } from "./downloads.js";
import { onFilterInput } from "./forms.js";
import { pendingSummary } from "./pending_requests.js";

const PAGES_MAX = 100;
const STATES = [
  ["", "All states"], ["healthy", "Healthy"], ["warning", "Warning"], ["broken", "Broken"], ["offline", "Offline"],
  ["never-connected", "Never connected"], ["revoked", "Revoked"],
];
// States that a device can have in addition to one of `STATES`.
const OTHER_STATES = [["online", "Online"], ["busy", "Busy"], ["closed", "Closed"], ["maintenance", "In maintenance"]];
const SEVERITIES = ["bad", "warn", "good", "muted"];
// The option that selects the devices of unknown version. The filter `version` is then the empty text.
const UNKNOWN_VERSION = "-";
export const FILTERS = ["search", "state", "location", "platform", "version"];

// The rows of the selected devices by instance id.
const selected = new Map();

export async function fetchDevices(filters, pages) {
  const [summary, ...replies] = await Promise.all([callConsole("summary"), callConsole("overview", { ...filters, count: true })]);
  let [{ devices: rows, nextCursor, canWrite, total, requestable }] = replies;
  for (let page = 1; page < Math.min(pages, PAGES_MAX) && nextCursor; page += 1) {
    const more = await callConsole("overview", { ...filters, cursor: nextCursor });
    rows = rows.concat(more.devices);
    nextCursor = more.nextCursor;
  }
  return { rows, summary, canWrite, hasMore: Boolean(nextCursor), filters, total, requestable };
}

export function showDevices(data, view, actions) {
  if (!byId("device-rows")) build(view, actions);
  for (const name of FILTERS) {
    const field = byId(`by-${name}`);
    if (field === document.activeElement) continue;
    if (name !== "search") fillOptions(field, name, data);
    const value = data.filters[name];
    field.value = name === "version" && value === "" ? UNKNOWN_VERSION : value || "";
  }
  showRows(data);
}

function showRows(data) {
  const { rows, canWrite, hasMore, summary, total } = data;
  byId("count").textContent = Object.keys(data.filters).length
    ? `${total.toLocaleString()} of ${plural(summary.states.all, "device")}`
    : plural(total, "device");
  replace(byId("device-rows"),
    rows.length ? table(rows, canWrite) : element("p", { class: "empty" }, emptyText(data)),
    hasMore ? element("button", { id: "more", class: "more", type: "button" }, "Show more") : null,
    element("p", { class: "zone" }, `Times are in the time zone of this browser, ${browserZone()}.`));
  for (const box of document.querySelectorAll("#device-rows input[type=checkbox]"))
    box.checked = selected.has(box.value);
  updateActions(data);
}

function build(view, actions) {
  selected.clear();
  const field = (name, label, control) =>
    element("label", { class: `by by-${name}` }, element("span", {}, label), control);
  const search = element("input", {
    id: "by-search", type: "search", autocomplete: "off", spellcheck: "false", maxlength: "200",
    placeholder: "Name, location, finding or printer",
  });
  const select = (name) => element("select", { id: `by-${name}` });
  view.replaceChildren(element("div", { class: "sheet" },
    element("div", { class: "title" }, element("h1", {}, "Devices"), element("span", { class: "count", id: "count", role: "status" }), addDeviceLink()),
    element("form", { class: "filters", id: "filters", role: "search" },
      field("search", "Find", search), field("state", "State", select("state")),
      field("location", "Location", select("location")), field("platform", "Platform", select("platform")),
      field("version", "Version", select("version"))),
    element("div", { class: "actions", id: "bulk-actions" },
      element("button", { id: "request-selected", type: "button", class: "primary" }, "Request reports from selected"),
      element("button", { id: "request-all", type: "button" }, "Request reports from all"),
      element("span", { class: "spread" }),
      element("button", { id: "save-csv", type: "button" }, "Save CSV"),
      element("button", { id: "save-json", type: "button" }, "Save JSON")),
    element("p", { class: "problem", role: "alert", id: "list-problem" }),
    element("div", { id: "device-rows" })));
  onFilterInput(byId("filters"), search, () => actions.filter(currentFilters()));
  view.firstChild.addEventListener("click", (event) => {
    const data = actions.data();
    const save = (kind) => actions.attempt(() => saveList(kind, data.filters));
    ({
      more: actions.more,
      "request-selected": () => openRequestDialog([...selected].map(([id, row]) => data.rows.find((each) => each.device.instanceId === id) || row), {}),
      "request-all": () => openRequestDialog(null, data.filters, data.requestable),
      "save-csv": () => save("csv"),
      "save-json": () => save("json"),
    })[event.target.closest("button")?.id]?.();
  });
  view.firstChild.addEventListener("change", (event) => {
    if (event.target.type !== "checkbox") return;
    const rows = actions.data().rows;
    for (const row of event.target.id === "choose-all" ? rows : rows.filter((each) => each.device.instanceId === event.target.value)) {
      if (event.target.checked && row.state !== "revoked") selected.set(row.device.instanceId, row);
      else selected.delete(row.device.instanceId);
    }
    showRows(actions.data());
  });
}

function currentFilters() {
  const filters = {};
  for (const name of FILTERS) {
    const { value } = byId(`by-${name}`);
    if (value.trim()) filters[name] = name === "version" && value === UNKNOWN_VERSION ? "" : value.trim();
  }
  return filters;
}

function fillOptions(select, name, { summary, filters }) {
  const counts = { location: summary.locations, platform: summary.platforms, version: summary.versions }[name];
  const choiceOf = ([value, text]) => [value, value ? `${text} (${summary.states[value].toLocaleString()})` : text];
  const choices = counts
    ? [["", `All ${name}s`], ...counts.map(({ value, count }) => [value ?? UNKNOWN_VERSION, `${value ?? "unknown"} (${count.toLocaleString()})`])]
    : STATES.map(choiceOf);
  const current = filters[name];
  const otherStates = counts ? [] : OTHER_STATES.map(choiceOf);
  if (current && ![...choices, ...otherStates].some(([value]) => value === current)) choices.push([current, current]);
  const option = ([value, text]) => element("option", { value }, text);
  replace(select, ...choices.map(option), otherStates.length ? element("optgroup", { label: "Independent of the states above" }, ...otherStates.map(option)) : null);
}

function updateActions({ rows, canWrite, requestable }) {
  byId("request-selected").hidden = byId("request-all").hidden = !canWrite;
  byId("request-selected").disabled = !selected.size;
  byId("request-selected").textContent = selected.size ? `Request reports from ${selected.size} selected` : "Request reports from selected";
  byId("request-all").disabled = !requestable;
  byId("request-all").textContent = requestAllText(requestable);
  const all = byId("choose-all");
  if (all) all.checked = rows.every((row) => row.state === "revoked" || selected.has(row.device.instanceId));
}

const emptyText = ({ filters }) => {
  if (Object.keys(filters).length) return "No devices match.";
  return "No device has enrolled yet. Give an agent this service's address and an API key with a write grant.";
};

function table(rows, canWrite) {
  const heads = ["Device", "State", "Reports", "Last seen", "Busy", "Reported"];
  return element("table", { class: "devices" },
    element("thead", {}, element("tr", {},
      canWrite ? element("th", { class: "choose" }, element("input", { type: "checkbox", id: "choose-all", "aria-label": "Choose all listed devices" })) : null,
      ...heads.map((head) => element("th", { scope: "col" }, head)))),
    element("tbody", {}, ...rows.map((row) => entry(row, canWrite))));
}

function entry(row, canWrite) {
  const { device, state, health } = row;
  const name = nameOf(device);
  return element("tr", {},
    canWrite ? element("td", { class: "choose" }, state === "revoked" ? null
      : element("input", { type: "checkbox", value: device.instanceId, "aria-label": `Choose ${name}` })) : null,
    element("td", { class: "who" },
      element("a", { class: "name", href: `#/device/${device.instanceId}` }, name),
      element("span", { class: "sub" }, `${locationOf(device)} · ${device.platform} · ${device.appVersion || "version unknown"}`)),
    element("td", {}, pill(health), state === "closed" || state === "maintenance" ? element("span", { class: "sub" }, ` ${state}`) : null),
    element("td", { class: "headline" }, ...reportLines(row)),
    element("td", { class: "when", "data-label": "last seen" }, state === "never-connected" ? "never" : timeAgo(device.lastSeenAt)),
    element("td", { class: "when", "data-label": "busy" }, busyWith(row)),
    element("td", { class: "when", "data-label": "reported" }, timeAgo(reportedAt(row))));
}

// Shows the running request, otherwise a different open request, otherwise the pending requests.
export function busyWith(row) {
  const { requests } = row;
  const [request] = [...requests].sort((one, other) => Number(other.status === "running") - Number(one.status === "running"));
  if (!request) return pendingSummary(row) || "–";
  const title = request.requestedBy ? `requested by ${request.requestedBy}` : null;
  const since = request.startedAt || request.createdAt;
  return element("span", { title }, pill(request.status), " ", element("span", { class: "sub" }, `${request.kind}, `, timeAgo(since)));
}

// The most severe report comes first.
export const reportLines = ({ reports }) => reports.length
  ? reports.toSorted((one, other) => rank(one) - rank(other)).map((report) => element("a", { class: "line", href: `#/report/${report.reportId}` },
      dot(report.severity || "muted"), element("span", {}, report.headline || `A report of kind ${report.kind}.`)))
  : [element("span", { class: "sub" }, "no report yet")];

const rank = ({ severity }) => SEVERITIES.indexOf(severity || "muted");
