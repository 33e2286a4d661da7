// Parses the address into a view.

import { accountRoute } from "./accounts.js";
import { FILTERS } from "./devices.js";
import { figuresRoute } from "./figures.js";
import { FILTERS as FINDING_FILTERS } from "./findings.js";
import { FILTERS as PRINTER_FILTERS } from "./printers.js";

export function routeOf(hash) {
  const [path, query] = hash.replace(/^#\//, "").split("?");
  const [, view, id] = path.match(/^(device|report)\/([0-9a-f-]{36})$/) || [];
  if (view) return { view, id };
  if (path === "") return { view: "home" };
  if (/^figures(-all$|\/|$)/.test(path)) return figuresRoute(path, query);
  if (path === "printers") return { view: "printers", filters: filtersOf(query, PRINTER_FILTERS) };
  if (path === "findings") return { view: "findings", filters: filtersOf(query, FINDING_FILTERS) };
  if (path !== "devices") return accountRoute(path, query) || { view: "unknown" };
  return { view: "devices", filters: filtersOf(query, FILTERS) };
}

function filtersOf(query, names) {
  const parameters = new URLSearchParams(query);
  return Object.fromEntries(names.filter((name) => parameters.has(name)).map((name) => [name, parameters.get(name)]));
}

// The navigation link that is marked as current in each view: the end of its id after `nav-`, or "" if no link is
// marked. In a view that is not listed here, the link to the devices is marked.
const CURRENT_LINKS = { home: "home", printers: "printers", findings: "findings", unknown: "", figures: "figures", venue: "figures", profile: "", members: "", locations: "", alerts: "", audit: "", support: "" };
export const currentLinkOf = (view) => CURRENT_LINKS[view] ?? "devices";
