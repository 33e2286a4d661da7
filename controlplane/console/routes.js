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

// The navigation link that is marked as current in each view. All other views mark the link of the devices.
const PARTS = { home: "home", figures: "figures", venue: "figures", profile: "", members: "", audit: "", support: "" };
export const partOf = (view) => PARTS[view] ?? "devices";
