// The printers of all devices, broken ones first, as one list or grouped by location.

import { callConsole } from "./facade.js";
import { byId, element, pill, plural, replace, timeAgo, browserZone } from "./elements.js";
import { locationOf, nameOf } from "./device_names.js";
import { fillSelect, onFilterInput } from "./forms.js";

const PAGES_MAX = 100;
const PAGE_SIZE = 100;
const STATES = [["broken", "Broken"], ["warning", "Warning"], ["unknown", "Unknown"], ["healthy", "Healthy"]];
export const FILTERS = ["search", "state", "location", "group"];

export async function fetchPrinters(filters, pages) {
  const { group, ...query } = filters;
  const body = { ...query, size: PAGE_SIZE };
  const [summary, first] = await Promise.all([callConsole("summary"), callConsole("printers", body)]);
  let { printers, nextCursor } = first;
  for (let page = 1; page < Math.min(pages, PAGES_MAX) && nextCursor; page += 1) {
    const more = await callConsole("printers", { ...body, cursor: nextCursor });
    printers = printers.concat(more.printers);
    nextCursor = more.nextCursor;
  }
  return { printers, states: first.states, locations: summary.locations, hasMore: Boolean(nextCursor), filters };
}

export function showPrinters(data, view, actions) {
  const { printers, states, hasMore, filters } = data;
  if (!byId("printer-rows")) build(view, actions);
  const total = Object.values(states).reduce((sum, count) => sum + count, 0);
  byId("printer-count").textContent = plural(total, "printer");
  fillSelect(byId("printers-state"), [["", `All states (${total.toLocaleString()})`], ...STATES.map(([state, text]) => [state, `${text} (${states[state].toLocaleString()})`])], filters.state);
  fillSelect(byId("printers-location"), [["", "All locations"], ...data.locations.map(({ value }) => [value, value])], filters.location);
  if (byId("printers-search") !== document.activeElement) byId("printers-search").value = filters.search || "";
  byId("printers-group").checked = filters.group === "location";
  replace(byId("printer-rows"),
    ...(printers.length ? tables(printers, filters.group === "location") : [element("p", { class: "empty" }, emptyText(filters))]),
    hasMore ? element("button", { class: "more", id: "more-printers", type: "button" }, "Show more") : null,
    element("p", { class: "zone" }, `The list is from the newest network report of each device. Times are in the time zone of this browser, ${browserZone()}.`));
}

function build(view, actions) {
  const field = (name, label, control) => element("label", { class: `by by-${name}` }, element("span", {}, label), control);
  view.replaceChildren(element("div", { class: "sheet" },
    element("div", { class: "title" }, element("h1", {}, "Printers"), element("span", { class: "count", id: "printer-count", role: "status" })),
    element("form", { class: "filters", id: "printer-filters", role: "search" },
      field("search", "Find", element("input", { id: "printers-search", type: "search", autocomplete: "off", spellcheck: "false", maxlength: "200", placeholder: "Printer, problem, device or location" })),
      field("state", "State", element("select", { id: "printers-state" })),
      field("location", "Location", element("select", { id: "printers-location" })),
      element("label", { class: "check" }, element("input", { id: "printers-group", type: "checkbox" }), " Group by location")),
    element("div", { id: "printer-rows" })));
  onFilterInput(byId("printer-filters"), byId("printers-search"), () => actions.filter(currentFilters()));
  byId("printer-rows").addEventListener("click", (event) => { if (event.target.id === "more-printers") actions.more(); });
}

function currentFilters() {
  const filters = { search: byId("printers-search").value.trim(), state: byId("printers-state").value, location: byId("printers-location").value, group: byId("printers-group").checked ? "location" : "" };
  return Object.fromEntries(Object.entries(filters).filter(([, value]) => value));
}


const emptyText = ({ group, ...filters }) => Object.keys(filters).length
  ? "No printers match."
  : "No printers yet. A network report lists the printers of its device.";

function tables(printers, isGrouped) {
  if (!isGrouped) return [table(printers, true)];
  const groups = new Map();
  for (const each of printers) {
    const locationName = locationOf(each.device);
    if (!groups.has(locationName)) groups.set(locationName, []);
    groups.get(locationName).push(each);
  }
  return [...groups].map(([locationName, rows]) => element("section", {}, element("h2", {}, locationName, " ", element("span", { class: "count" }, describeCount(rows))), table(rows, false)));
}

const describeCount = (rows) => {
  const broken = rows.filter(({ state }) => state === "broken").length;
  return broken ? `${broken} of ${rows.length} broken` : plural(rows.length, "printer");
};

function table(printers, hasLocation) {
  const heads = ["Printer", "State", "Since", "Device", ...(hasLocation ? ["Location"] : []), "Reason"];
  return element("table", { class: "devices" },
    element("thead", {}, element("tr", {}, ...heads.map((head) => element("th", { scope: "col" }, head)))),
    element("tbody", {}, ...printers.map((each) => entry(each, hasLocation))));
}

function entry({ name, address, state, since, detail, device, health }, hasLocation) {
  return element("tr", {},
    element("td", { class: "who" }, element("span", { class: "name" }, name), element("span", { class: "sub" }, address || "no address")),
    element("td", {}, pill(state)),
    element("td", { class: "when", "data-label": "since" }, timeAgo(since)),
    element("td", { class: "who", "data-label": "device" }, element("a", { href: `#/device/${device.instanceId}` }, nameOf(device)),
      health === "offline" ? element("span", { class: "sub" }, "device offline") : null),
    hasLocation ? element("td", { "data-label": "location" }, locationOf(device)) : null,
    element("td", { class: "headline" }, detail));
}
