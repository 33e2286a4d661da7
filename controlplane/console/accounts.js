// The views of accounts: profile, members, locations, alerts, new devices, audit log and support.

import { fetchAlerts, showAlerts } from "./alerts.js";
import { FILTERS, fetchAudit, showAudit } from "./audit.js";
import { fetchMembers, showMembers } from "./members.js";
import { fetchAddDevice, reloadMs, showAddDevice } from "./add_device.js";
import { fetchLocationsPage, showLocations } from "./locations.js";
import { fetchProfile, showProfile } from "./profile.js";
import { fetchSupport, showSupport } from "./support.js";

const PATHS = ["profile", "members", "locations", "alerts", "add-device", "audit", "support"];

// Returns views for `VIEWS` in main.js. `hooks` are functions:
// - `refresh` loads the view again.
// - `sessionEnded` is called when the session has ended.
// - `attempt` runs an action and then refreshes.
// - `pages` returns the number of pages to load, and `more` loads one more page.
// - `filter` writes new filters into the address.
export function accountViews(hooks) {
  const rows = () => null;
  return {
    profile: { load: fetchProfile, show: (data, view) => showProfile(data, view, hooks), title: () => "Your profile", rows },
    members: { load: fetchMembers, show: (data, view) => showMembers(data, view, hooks), title: () => "Members", rows },
    locations: { load: fetchLocationsPage, show: (data, view) => showLocations(data, view, hooks), title: () => "Locations", rows },
    alerts: { load: fetchAlerts, show: (data, view) => showAlerts(data, view, hooks), title: () => "Alerts", rows },
    "add-device": { load: fetchAddDevice, show: (data, view) => showAddDevice(data, view, hooks), title: () => "Add a device", rows, get reloadMs() { return reloadMs(); } },
    audit: { load: (route) => fetchAudit(route, hooks.pages()), show: (data, view) => showAudit(data, view, hooks), title: () => "Audit log", rows },
    support: { load: fetchSupport, show: (data, view) => showSupport(data, view, hooks), title: () => "Support", rows },
  };
}

export function accountRoute(path, query) {
  const [, id] = path.match(/^alerts\/([0-9a-f-]{36})$/) || [];
  if (id) return { view: "alerts", id };
  if (!PATHS.includes(path)) return null;
  const parameters = new URLSearchParams(query);
  return { view: path, filters: Object.fromEntries(FILTERS.filter((name) => parameters.has(name)).map((name) => [name, parameters.get(name)])) };
}
