// Parses the address into a view.

import { accountRoute } from "./accounts.js";
import { FILTERS } from "./devices.js";
import { figuresRoute } from "./figures.js";

export function routeOf(hash) {
  const [path, query] = hash.replace(/^#\//, "").split("?");
  const [, view, id] = path.match(/^(device|report)\/([0-9a-f-]{36})$/) || [];
  if (view) return { view, id };
  if (path.startsWith("figures")) return figuresRoute(path, query);
  if (path !== "devices") return accountRoute(path, query) || { view: "home" };
  const wanted = new URLSearchParams(query);
  return { view: "devices", filters: Object.fromEntries(FILTERS.filter((name) => wanted.has(name)).map((name) => [name, wanted.get(name)])) };
}

// The navigation link that is marked as current in each view: `nav-…`, or "" if no link is marked. In a view
// that is not listed here, the link to the devices is marked.
const CURRENT_LINKS = { home: "home", figures: "figures", venue: "figures", profile: "", members: "", locations: "", audit: "", support: "" };
export const currentLinkOf = (view) => CURRENT_LINKS[view] ?? "devices";
