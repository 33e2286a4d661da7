// The profile of the signed-in user: organization, sessions, API keys and programs with access.

import { callConsole } from "./facade.js";
import { byId, element, pill, replace, timeAgo } from "./elements.js";
import { openConfirmation, describeLocations, locationsField, openForm, showSecret } from "./forms.js";
import { fetchLocationNames } from "./locations.js";
import { fetchSecondFactor, showSecondFactor } from "./second_factor.js";
import { setOwnProfile } from "./signing_in.js";

const PASSWORD_MIN = 12;
// The first match counts: the user agent of Chrome, for example, also contains "Safari/".
const BROWSERS = [["Edg/", "Edge"], ["OPR/", "Opera"], ["Firefox/", "Firefox"], ["Chrome/", "Chrome"], ["Safari/", "Safari"]];
const SYSTEMS = [["Android", "Android"], ["iPhone", "iPhone"], ["iPad", "iPad"], ["Windows", "Windows"], ["Mac OS", "macOS"], ["Linux", "Linux"]];

export async function fetchProfile() {
  const [profile, { grants }, names, factor] = await Promise.all(
    [callConsole("profile"), callConsole("profile/grants"), fetchLocationNames(), fetchSecondFactor()]);
  setOwnProfile(profile);
  return { ...profile, grants, names, factor };
}

export function showProfile(data, view, hooks) {
  if (!byId("profile")) build(view, hooks);
  const current = data.organizations.find((each) => each.id === data.organizationId);
  byId("new-key").onclick = () => newKey(current, data.names, hooks);
  replace(byId("who"),
    element("h1", {}, data.user.name),
    element("p", { class: "lede" }, `${data.user.email} · ${current.role} of ${current.name || current.id}, at ${describeLocations(current.locations, data.names)}`));
  replace(byId("keys"), keys(data, hooks));
  replace(byId("factor"), showSecondFactor(data.factor, hooks));
  replace(byId("grants"), grants(data, hooks));
  replace(byId("sessions"), sessions(data.sessions, hooks));
  const others = data.sessions.filter((each) => !each.isThis);
  byId("end-others").hidden = !others.length;
  byId("end-others").onclick = () => endOthers(others, hooks);
  replace(byId("elsewhere"), ...otherOrganizations(data, hooks));
}

function build(view, hooks) {
  const section = (id, title, ...buttons) => element("section", {},
    element("div", { class: "heading" }, element("h2", {}, title), ...buttons), element("div", { id }));
  view.replaceChildren(element("div", { class: "sheet", id: "profile" },
    element("div", { id: "who" }),
    element("div", { class: "actions" }, element("button", { type: "button", id: "change-password", onclick: () => newPassword(hooks) }, "Change password")),
    element("p", { class: "problem", role: "alert", id: "account-problem" }),
    section("factor", "Second factor"),
    section("keys", "Your API keys", element("button", { type: "button", id: "new-key" }, "New key")),
    section("grants", "Programs with access"),
    section("sessions", "Sessions", element("button", { type: "button", id: "end-others" }, "Sign out everywhere else")),
    element("div", { id: "elsewhere" })));
}

function keys({ keys: rows, names }, hooks) {
  if (!rows.length) return element("p", { class: "empty" }, "You have no API keys. With a key, an agent or program acts as you, within the limits of the key.");
  return element("ul", { class: "cards people" }, ...rows.map((key) => element("li", {},
    element("div", {},
      element("span", { class: "name" }, key.name), " ", element("span", { class: "sub mono" }, `…${key.hint}`),
      element("p", { class: "sub" }, `${key.canWrite ? "Reads and writes" : "Only reads"}, at ${describeLocations(key.locations, names)}`),
      element("p", { class: "sub" }, "Created ", timeAgo(key.createdAt), " · used ", key.lastUsedAt ? timeAgo(key.lastUsedAt) : "never")),
    element("button", { type: "button", class: "danger", id: `revoke-${key.id}`, "aria-label": `Revoke ${key.name}`, onclick: () => revokeKey(key, hooks) }, "Revoke"))));
}

function grants({ grants: rows, organizations, organizationId }, hooks) {
  if (!rows.length) return element("p", { class: "empty" }, "No program has access. An assistant that you allow to read your business data is listed here.");
  const names = new Map(organizations.map((each) => [each.id, each.name || each.id]));
  return element("ul", { class: "cards people" }, ...rows.map((grant) => element("li", {},
    element("div", {},
      element("span", { class: "name" }, grant.clientName),
      element("p", { class: "sub" },
        `Can read your data${grant.organizationId === organizationId ? "" : ` of ${names.get(grant.organizationId) ?? grant.organizationId}`} and sends it to ${grant.clientHosts.join(", ") || "a program on your own computer"}`),
      element("p", { class: "sub" }, "Since ", timeAgo(grant.createdAt), " · used ", timeAgo(grant.lastUsedAt))),
    element("button", { type: "button", class: "danger", id: `end-${grant.id}`, "aria-label": `Stop ${grant.clientName}`, onclick: () => endGrant(grant, hooks) }, "Stop"))));
}

function endGrant(grant, hooks) {
  openConfirmation({ title: `Stop ${grant.clientName}?`, text: "The program can no longer read your data. It can request access again.", keep: "Keep", action: "Stop" },
    () => hooks.attempt(() => callConsole("profile/end-grant", { grantId: grant.id })));
}

function sessions(rows, hooks) {
  return element("ul", { class: "cards people" }, ...rows.map((each) => element("li", {},
    element("div", {},
      element("span", { class: "name", title: each.userAgent }, browserOf(each.userAgent)), " ",
      each.isThis ? pill("good", "this browser") : null,
      element("p", { class: "sub" }, `From ${each.address || "an unknown address"} · used `, timeAgo(each.lastUsedAt), " · since ", timeAgo(each.createdAt))),
    each.isThis ? null : element("button", { type: "button", id: `end-${each.id}`, "aria-label": `Sign out ${browserOf(each.userAgent)}`, onclick: () =>
      hooks.attempt(() => callConsole("profile/end-session", { sessionId: each.id })) }, "Sign out"))));
}

function otherOrganizations({ organizations, organizationId }, hooks) {
  const others = organizations.filter((each) => each.id !== organizationId);
  if (!others.length) return [];
  return [element("section", {}, element("h2", {}, "Your other organizations"),
    element("ul", { class: "cards people" }, ...others.map((each) => element("li", {},
      element("div", {}, element("span", { class: "name" }, each.name || each.id), element("p", { class: "sub" }, `${each.role}, at ${describeLocations(each.locations)}`)),
      element("button", { type: "button", id: `choose-${each.id}`, onclick: () =>
        hooks.attempt(async () => {
          await callConsole("profile/choose-organization", { organizationId: each.id });
          location.reload();  // everything on the page belongs to the previous organization
        }) }, "Switch")))))];
}

function newKey(current, names, hooks) {
  const permissions = [["read", "Only read"], ["write", "Read and write, which an agent needs"]];
  openForm({
    title: "New API key", action: "Create key",
    text: "The key acts as you. It is revoked when your membership ends.",
    fields: [
      { name: "name", label: "Name", required: true, maxlength: 128, autocomplete: "off", hint: "Shown in lists." },
      { name: "grant", label: "Permission", options: current.role === "viewer" ? permissions.slice(0, 1) : permissions },
      locationsField(names),
    ],
  }, async ({ name, grant, locations }) => {
    const reply = await callConsole("profile/create-key", { name: name.trim(), canWrite: grant === "write", locations });
    hooks.refresh();
    return () => showSecret({ title: `The key ${reply.key.name}`, text: "The key is not stored and not shown again. Copy it now.", value: reply.secret });
  }, hooks.sessionEnded);
}

function revokeKey(key, hooks) {
  openConfirmation({ title: `Revoke ${key.name}?`, text: "Programs with this key are refused within seconds. You cannot undo this.", keep: "Keep", action: "Revoke" },
    () => hooks.attempt(() => callConsole("profile/revoke-key", { keyId: key.id })));
}

function endOthers(others, hooks) {
  hooks.attempt(async () => {
    for (const each of others) {
      try {
        await callConsole("profile/end-session", { sessionId: each.id });
      } catch (error) {
        if (error.status !== 404) throw error;  // 404: the session has already ended
      }
    }
  });
}

function newPassword(hooks) {
  openForm({
    title: "Change password", action: "Change",
    text: "Your other sessions and the access of connected programs end. Your API keys stay valid.",
    fields: [
      { name: "old", label: "Current password", type: "password", required: true, autocomplete: "current-password" },
      { name: "password", label: "New password", type: "password", required: true, minlength: PASSWORD_MIN, maxlength: 256, autocomplete: "new-password", hint: `At least ${PASSWORD_MIN} characters.` },
      { name: "again", label: "New password again", type: "password", required: true, autocomplete: "new-password" },
    ],
  }, async ({ old, password, again }) => {
    if (password !== again) throw new Error("The two new passwords differ.");
    await callConsole("profile/change-password", { oldPassword: old, newPassword: password });
    byId("announced").textContent = "Your password is changed.";
    hooks.refresh();
  }, hooks.sessionEnded);
}

function browserOf(agent) {
  const find = (names) => names.find(([part]) => agent.includes(part))?.[1];
  const [browser, system] = [find(BROWSERS), find(SYSTEMS)];
  return browser ? `${browser}${system ? ` on ${system}` : ""}` : agent.slice(0, 60) || "An unknown browser";
}
