// The audit log for owners: requests and changes, with user and credential.

import { callConsole } from "./facade.js";
import { byId, element, exactTime, pill, replace, browserZone } from "./elements.js";

const PAGES_MAX = 100;
const AREAS = [
  ["", "Everything"], ["session", "Sign-ins"], ["member", "Members"], ["invitation", "Invitations"], ["password", "Passwords"],
  ["second_factor", "Second factors"], ["sign_in_policy", "Sign-in policy"],
  ["key", "API keys"], ["retail_key", "Retail keys"], ["request", "Requests"], ["pending_request", "Pending requests"],
  ["device", "Devices"], ["location", "Locations"], ["maintenance", "Maintenance"], ["organization", "Organization"], ["alert_webhook", "Webhook for alerts"],
  ["alert", "Acknowledged alerts"], ["alert_rule", "Alert rules"], ["alert_route", "Alert routes"], ["silence", "Silences"],
  ["grant", "Program access"], ["support", "Support"],
];
const WORDS = {
  "request.create": "requested a report of", "pending_request.create": "created a pending request for a report of", "pending_request.cancel": "cancelled the pending request of",
  "device.revoke": "revoked the device", "key.create": "created the API key", "key.revoke": "revoked the API key",
  "retail_key.create": "created the retail key", "retail_key.revoke": "revoked the retail key", "retail_key.rotate": "replaced the signing key",
  "member.add": "added the member", "member.invite": "invited", "member.join": "joined", "member.change": "changed the member",
  "member.remove": "removed the member", "invitation.revoke": "revoked the invitation of", "password.change": "changed the password of",
  "session.sign_in": "signed in", "session.sign_out": "signed out", "session.end": "ended a session", "session.choose_organization": "switched from another organization",
  "second_factor.set_up": "set up a second factor for", "second_factor.remove": "removed the second factor of",
  "second_factor.recovery_codes": "replaced the recovery codes of", "sign_in_policy.change": "changed the sign-in policy of",
  "location.hours": "set the opening hours of", "location.name": "named the location", "organization.name": "named the organization",
  "maintenance.add": "started maintenance at", "maintenance.end": "ended maintenance at",
  "alert_webhook.set": "set the webhook for alerts of", "alert_webhook.remove": "removed the webhook for alerts of",
  "alert.acknowledge": "acknowledged the alert", "alert_rule.set": "set the alert rule", "alert_rule.remove": "removed the alert rule",
  "alert_route.set": "set the alert route", "alert_route.remove": "removed the alert route", "alert_route.test": "tested the alert route",
  "silence.add": "added the silence", "silence.end": "ended the silence",
  "grant.create": "granted access to", "grant.end": "ended the access of",
  "support.confirm": "linked with support:", "support.disconnect": "unlinked from support:",
};
// The words for refused operations, instead of the words in `WORDS`.
const REFUSED_WORDS = { "member.join": "tried to join as", "session.sign_in": "tried to sign in", "password.change": "tried to change the password of" };
const CREDENTIALS = { session: "by a session", invitation: "by an invitation", pending_request: "by a pending request", oauth: "by a program" };
// The sentences about these operations do not name the subject. Only "tried to join as" names it.
const NAMELESS = new Set(["session.sign_in", "session.sign_out", "session.end", "session.choose_organization", "member.join"]);
export const FILTERS = ["by", "area"];

export async function fetchAudit({ filters }, pages) {
  const filterValues = Object.fromEntries(Object.entries(filters).filter(([, value]) => value));
  let { entries, nextCursor } = await callConsole("audit", filterValues);
  for (let page = 1; page < Math.min(pages, PAGES_MAX) && nextCursor; page += 1) {
    const more = await callConsole("audit", { ...filterValues, cursor: nextCursor });
    entries = entries.concat(more.entries);
    nextCursor = more.nextCursor;
  }
  return { entries, filters, hasMore: Boolean(nextCursor) };
}

export function showAudit(data, view, hooks) {
  if (!byId("audit")) build(view, hooks);
  for (const name of FILTERS) {
    const field = byId(`audit-${name}`);
    if (field !== document.activeElement) field.value = data.filters[name] || "";
  }
  replace(byId("audit-rows"),
    data.entries.length ? element("ul", { class: "cards log" }, ...data.entries.map(line)) : element("p", { class: "empty" }, "Nothing was found."),
    data.hasMore ? element("button", { class: "more", id: "older", type: "button", onclick: hooks.more }, "Show older") : null,
    element("p", { class: "zone" }, `Times are in the time zone of this browser, ${browserZone()}. Heartbeats, reports and read access are not logged.`));
}

function build(view, hooks) {
  const applyFilters = () => hooks.filter("audit", Object.fromEntries(FILTERS.map((name) => [name, byId(`audit-${name}`).value.trim()]).filter(([, value]) => value)));
  view.replaceChildren(element("div", { class: "sheet", id: "audit" },
    element("h1", {}, "Audit log"),
    element("div", { class: "filters" },
      element("label", { class: "by by-search" }, element("span", {}, "User, or the last characters of a key"),
        element("input", { id: "audit-by", type: "search", maxlength: 128, autocomplete: "off", spellcheck: "false", onchange: applyFilters })),
      element("label", { class: "by by-search" }, element("span", {}, "About"),
        element("select", { id: "audit-area", onchange: applyFilters }, ...AREAS.map(([value, word]) => element("option", { value }, word))))),
    element("section", { id: "audit-rows" })));
}

const line = (each) => element("li", {},
  element("div", {},
    element("strong", {}, actorOf(each)), " ",
    describe(each), " ",
    each.outcome === "refused" ? pill("bad", "refused") : null,
    each.detail ? element("p", { class: "detail" }, each.detail) : null),
  element("p", { class: "sub" }, element("time", { datetime: each.at }, exactTime(each.at)),
    element("span", { class: "by-what", title: each.credentialId },
      [credentialOf(each), each.address && `from ${each.address}`].filter(Boolean).join(" "))));

function describe({ operation, outcome, subjectKind, subjectId, subjectName }) {
  const words = (outcome === "refused" && REFUSED_WORDS[operation]) || WORDS[operation] || operation;
  if (NAMELESS.has(operation) && words !== REFUSED_WORDS["member.join"]) return words;
  const name = [subjectKind === "location" ? subjectId : "", subjectName].filter(Boolean).join(", ") || subjectId;
  if (subjectKind !== "device") return `${words} ${name}`;
  return element("span", {}, `${words} `, element("a", { href: `#/device/${subjectId}` }, name));
}

const ACTORS = { command_line: "The command line", unknown: "Unknown user", key: "A key", user: "A user" };
const actorOf = ({ actorKind, actorName }) => actorKind === "command_line" ? ACTORS[actorKind] : actorName || ACTORS[actorKind];

const credentialOf = ({ credentialKind, credentialHint }) =>
  credentialHint ? `by the key …${credentialHint}` : CREDENTIALS[credentialKind] || "";
