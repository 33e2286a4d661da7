// The views of accounts: profile, members, audit log and support.

import { FILTERS, fetchAudit, showAudit } from "./audit.js";
import { fetchMembers, showMembers } from "./members.js";
import { fetchProfile, showProfile } from "./profile.js";
import { fetchSupport, showSupport } from "./support.js";

const PATHS = ["profile", "members", "audit", "support"];

// `hooks`: refresh, left (the session has ended), attempt (an action, then refresh), pages (number of
// pages), more (one more page), filter (new filters in the address).
export function accountViews(hooks) {
  const rows = () => null;
  return {
    profile: { load: fetchProfile, show: (data, view) => showProfile(data, view, hooks), title: () => "Your profile", rows },
    members: { load: fetchMembers, show: (data, view) => showMembers(data, view, hooks), title: () => "Members", rows },
    audit: { load: (route) => fetchAudit(route, hooks.pages()), show: (data, view) => showAudit(data, view, hooks), title: () => "Audit log", rows },
    support: { load: fetchSupport, show: (data, view) => showSupport(data, view, hooks), title: () => "Support", rows },
  };
}

export function accountRoute(path, query) {
  if (!PATHS.includes(path)) return null;
  const wanted = new URLSearchParams(query);
  return { view: path, filters: Object.fromEntries(FILTERS.filter((name) => wanted.has(name)).map((name) => [name, wanted.get(name)])) };
}
