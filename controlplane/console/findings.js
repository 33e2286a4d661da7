// How many devices have each finding, and the devices with one finding, by location.

import { callConsole } from "./facade.js";
import { saveFindings } from "./downloads.js";
import { fillSelect, onFilterInput } from "./forms.js";
import { byId, dot, element, pill, plural, replace, timeAgo, browserZone } from "./elements.js";

const PAGES_MAX = 100;
const GROUPS_MAX = 10;  // rows in a table of locations, platforms or versions
const STATES = ["broken", "warning", "healthy", "offline", "never-connected", "online", "closed", "maintenance"];
export const FILTERS = ["rule", "isNew", "search", "state", "location", "platform", "version"];

export async function fetchFindings({ isNew, ...filters }, pages) {
  const query = { ...filters, ...(isNew && { isNew: true }) };
  const isList = Boolean(filters.rule || isNew);
  const [summary, counts, worst, list] = await Promise.all([
    callConsole("summary"), callConsole("findings", filters),
    isList ? null : callConsole("findings/printers", { ...filters, size: 5 }), isList ? fetchEntries(query, pages) : null]);
  return { summary, counts, worst, list, filters: query };
}

async function fetchEntries(query, pages) {
  let list = await callConsole("findings/devices", query);
  for (let page = 1; page < Math.min(pages, PAGES_MAX) && list.nextCursor; page += 1) {
    const more = await callConsole("findings/devices", { ...query, cursor: list.nextCursor });
    list = { ...more, entries: list.entries.concat(more.entries) };
  }
  return list;
}

export function showFindings(data, view, actions) {
  const { summary, counts, list, filters } = data;
  if (!byId("finding-rows")) build(view, actions);
  byId("findings-save").filters = filters;  // for the buttons, which are built only once
  byId("finding-count").textContent = plural(counts.deviceCount, "device");
  const fill = (name, choices) => fillSelect(byId(`findings-${name}`), choices, filters[name]);
  fill("rule", [["", "All findings"], ...counts.findings.map(({ rule, title }) => [rule, title])]);
  fill("state", [["", "All states"], ...STATES.map((state) => [state, state.replace("-", " ")])]);
  for (const name of ["location", "platform", "version"]) {
    fill(name, [["", `All ${name}s`], ...summary[`${name}s`].map(({ value }) => [value || "", value || "unknown"])]);
  }
  if (byId("findings-search") !== document.activeElement) byId("findings-search").value = filters.search || "";
  byId("findings-new").checked = Boolean(filters.isNew);
  replace(byId("finding-rows"), unknownNote(counts),
    ...(list ? entries(data) : overview(data)),
    element("p", { class: "zone" }, `The findings are from the newest reports of the last 7 days. Days of the trend end at midnight UTC. Times are in the time zone of this browser, ${browserZone()}.`));
}

function build(view, actions) {
  const field = (name, label, control) => element("label", { class: `by by-${name}` }, element("span", {}, label), control);
  const choice = (name, label) => field(name, label, element("select", { id: `findings-${name}` }));
  const save = (kind) => () => actions.attempt(() => saveFindings(kind, byId("findings-save").filters));
  view.replaceChildren(element("div", { class: "sheet" },
    element("div", { class: "title" }, element("h1", {}, "Findings"), element("span", { class: "count", id: "finding-count", role: "status" }),
      element("span", { class: "actions", id: "findings-save" },
        element("button", { id: "findings-csv", type: "button", onclick: save("csv") }, "Save CSV"), " ",
        element("button", { id: "findings-json", type: "button", onclick: save("json") }, "Save JSON"))),
    element("p", { class: "problem", id: "list-problem", role: "alert" }),
    element("form", { class: "filters", id: "finding-filters", role: "search" },
      field("search", "Find", element("input", { id: "findings-search", type: "search", autocomplete: "off", spellcheck: "false", maxlength: "200", placeholder: "Device, location or text of a report" })),
      choice("rule", "Finding"), choice("state", "State"), choice("location", "Location"), choice("platform", "Platform"), choice("version", "Version"),
      element("label", { class: "check" }, element("input", { id: "findings-new", type: "checkbox" }), " New since yesterday")),
    element("div", { id: "finding-rows" })));
  onFilterInput(byId("finding-filters"), byId("findings-search"), () => actions.filter(currentFilters()));
  byId("finding-rows").addEventListener("click", (event) => { if (event.target.id === "more-findings") actions.more(); });
}

function currentFilters() {
  const names = FILTERS.filter((name) => name !== "isNew");
  const filters = names.map((name) => [name, byId(`findings-${name}`).value.trim()]).filter(([, value]) => value);
  return { ...Object.fromEntries(filters), ...(byId("findings-new").checked && { isNew: "true" }) };
}

const unknownNote = ({ unknownCount }) => unknownCount
  ? element("p", { class: "note", id: "findings-unknown" }, pill("unknown"), ` ${plural(unknownCount, "device")} without a recent report that could contain these findings.`) : null;
// The service returns addresses such as /#/findings. The slash at the start is removed.
const link = (address, ...children) => element("a", { href: address.slice(1) }, ...children);

function overview({ counts, worst }) {
  const present = counts.findings.filter(({ deviceCount }) => deviceCount);
  if (!present.length) return [element("p", { class: "empty" }, "No findings in the reports of the matching devices.")];
  return [table(["Finding", "Devices", "Unknown", "New", "30 days"], present.map(row)),
    groups("Locations with most problems and warnings", counts.locations, counts.moreLocations),
    groups("Platforms", counts.platforms, 0), groups("Versions", counts.versions, 0), printers(worst)];
}

function row({ title, severity, fix, deviceCount, unknownCount, newCount, trend, link: address }) {
  return element("tr", {},
    element("td", { class: "who" }, element("p", { class: "line" }, dot(severity), element("span", {}, link(address, title), element("span", { class: "sub" }, fix)))),
    element("td", { "data-label": "devices" }, deviceCount.toLocaleString()),
    element("td", { "data-label": "unknown" }, unknownCount.toLocaleString()),
    element("td", { "data-label": "new" }, newCount ? `+${newCount.toLocaleString()}` : "–"),
    element("td", { "data-label": "30 days" }, change(trend)));
}

function change(trend) {
  if (!trend) return "–";
  const [before, now] = [trend[0], trend.at(-1)];
  return `${before.toLocaleString()} → ${now.toLocaleString()}`;
}

function groups(title, values, moreCount) {
  const listed = values.filter(({ count, unknownCount }) => count || unknownCount).slice(0, GROUPS_MAX);
  if (!listed.length) return null;
  const more = values.length - listed.length + moreCount;
  return element("section", {}, element("h2", {}, title),
    table(["Name", "Findings", "Unknown"], listed.map(({ value, name, count, unknownCount, link: address }) => element("tr", {},
      element("td", { class: "who" }, link(address, name || value || "unknown")),
      element("td", { "data-label": "findings" }, count.toLocaleString()),
      element("td", { "data-label": "unknown devices" }, unknownCount.toLocaleString())))),
    more > 0 ? element("p", { class: "more" }, `And ${more.toLocaleString()} more.`) : null);
}

function printers({ printers: rows }) {
  if (!rows.length) return null;
  return element("section", {}, element("h2", {}, "Worst printers of the last 30 days"),
    table(["Printer", "State", "Broken for", "Times", "Device"], rows.map((each) => element("tr", {},
      element("td", { class: "who" }, each.name, element("span", { class: "sub" }, each.locationName || each.locationId)),
      element("td", {}, pill(each.state || "unknown")),
      element("td", { "data-label": "broken for" }, formatDuration(each.brokenSeconds)),
      element("td", { "data-label": "times" }, each.brokenCount.toLocaleString()),
      element("td", { "data-label": "device" }, link(each.link, each.deviceName))))));
}

function formatDuration(seconds) {
  if (seconds >= 2 * 86400) return `${Math.round(seconds / 86400)} days`;
  return seconds >= 2 * 3600 ? `${Math.round(seconds / 3600)} h` : `${Math.round(seconds / 60)} min`;
}

function entries({ list, counts, filters }) {
  const selected = counts.findings.find(({ rule }) => rule === filters.rule);
  const { isNew, rule, ...others } = filters;
  return [
    element("p", {}, element("a", { href: `#/findings?${new URLSearchParams(others)}` }, "All findings")),
    selected ? summaryOf(selected) : null,
    list.entries.length ? element("ul", { class: "cards findings" }, ...list.entries.map(entry)) : element("p", { class: "empty" }, isNew ? "No new findings." : "No devices have this finding."),
    list.nextCursor ? element("button", { class: "more", id: "more-findings", type: "button" }, "Show more") : null,
    ...(selected ? [groups("Platforms", counts.platforms, 0), groups("Versions", counts.versions, 0)] : []),
  ];
}

function summaryOf({ title, severity, fix, deviceCount, unknownCount, newCount, trend }) {
  return element("section", { id: "finding-summary" },
    element("h2", {}, dot(severity), ` ${title}`), element("p", {}, `What to do: ${fix}.`),
    element("p", { class: "sub" }, `${plural(deviceCount, "device")}, ${newCount.toLocaleString()} new since yesterday, ${unknownCount.toLocaleString()} unknown.`),
    trend ? bars(trend) : null);
}

function bars(trend) {
  const most = Math.max(1, ...trend);
  const text = `Devices with this finding at the end of each of the last 30 days: ${trend[0]} on the first day, ${trend.at(-1)} on the last day, at most ${most}.`;
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  for (const [name, value] of Object.entries({ viewBox: "0 0 300 40", preserveAspectRatio: "xMinYMid meet", role: "img", "aria-label": text, class: "trend" })) svg.setAttribute(name, value);
  trend.forEach((count, day) => {
    const height = (36 * count) / most;
    const bar = document.createElementNS(svg.namespaceURI, "rect");
    for (const [name, value] of Object.entries({ x: day * 10 + 1, y: 38 - height, width: 8, height: height + 2 })) bar.setAttribute(name, value);
    svg.append(bar);
  });
  return svg;
}

function entry({ title, severity, locationId, locationName, deviceCount, since, devices, link: address }) {
  const isShared = deviceCount > 1;
  const names = devices.flatMap((each, index) => [index ? ", " : "", element("a", { href: `#/device/${each.instanceId}` }, each.name)]);
  return element("li", {}, element("p", { class: "line" }, dot(severity), element("span", {},
    isShared ? `${plural(deviceCount, "device")} at ` : "", link(address, locationName || locationId),
    `: ${isShared ? title : devices[0].sentence}`,
    element("span", { class: "sub" }, "since ", timeAgo(since), ": ", ...names, deviceCount > devices.length ? ` and ${deviceCount - devices.length} more` : ""))));
}

function table(heads, rows) {
  return element("table", { class: "devices" },
    element("thead", {}, element("tr", {}, ...heads.map((head) => element("th", { scope: "col" }, head)))),
    element("tbody", {}, ...rows));
}
