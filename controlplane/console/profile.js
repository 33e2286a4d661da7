// Who is signed in: where, by which browsers, with which API keys of their own, and which programs
// they let read.

import { callConsole } from "./facade.js";
import { element, pill, replace, when } from "./elements.js";
import { PLACES_HINT, confirmed, inPlaces, openForm, placesOf, showSecret } from "./forms.js";
import { knowPerson } from "./signing_in.js";

const at = (id) => document.getElementById(id);
const PASSWORD_MIN = 12;
const BROWSERS = [["Edg/", "Edge"], ["OPR/", "Opera"], ["Firefox/", "Firefox"], ["Chrome/", "Chrome"], ["Safari/", "Safari"]];
const SYSTEMS = [["Android", "Android"], ["iPhone", "iPhone"], ["iPad", "iPad"], ["Windows", "Windows"], ["Mac OS", "macOS"], ["Linux", "Linux"]];

export async function fetchProfile() {
  const [profile, { grants }] = await Promise.all([callConsole("profile"), callConsole("profile/grants")]);
  knowPerson(profile);
  return { ...profile, grants };
}

export function showProfile(data, view, hooks) {
  if (!at("profile")) build(view, hooks);
  const here = data.organizations.find((each) => each.id === data.organizationId);
  at("new-key").onclick = () => newKey(here, hooks);
  replace(at("who"),
    element("h1", {}, data.user.name),
    element("p", { class: "lede" }, `${data.user.email} · ${here.role} of ${here.name || here.id}, at ${inPlaces(here.locations)}`));
  replace(at("keys"), keys(data.keys, hooks));
  replace(at("grants"), grants(data, hooks));
  replace(at("sessions"), sessions(data.sessions, hooks));
  const others = data.sessions.filter((each) => !each.isThis);
  at("end-others").hidden = !others.length;
  at("end-others").onclick = () => endOthers(others, hooks);
  replace(at("elsewhere"), ...elsewhere(data, hooks));
}

function build(view, hooks) {
  const section = (id, title, ...rest) => element("section", {},
    element("div", { class: "heading" }, element("h2", {}, title), ...rest), element("div", { id }));
  view.replaceChildren(element("div", { class: "sheet", id: "profile" },
    element("div", { id: "who" }),
    element("div", { class: "actions" }, element("button", { type: "button", id: "change-password", onclick: () => newPassword(hooks) }, "Change password")),
    element("p", { class: "problem", role: "alert", id: "account-problem" }),
    section("keys", "Your API keys", element("button", { type: "button", id: "new-key" }, "New key")),
    section("grants", "Programs that you let read"),
    section("sessions", "Where you are signed in", element("button", { type: "button", id: "end-others" }, "Sign out everywhere else")),
    element("div", { id: "elsewhere" })));
}

function keys(rows, hooks) {
  if (!rows.length) return element("p", { class: "empty" }, "You have none. An agent or a program acts as you with a key, cut to what the key may do.");
  return element("ul", { class: "cards people" }, ...rows.map((key) => element("li", {},
    element("div", {},
      element("span", { class: "name" }, key.name), " ", element("span", { class: "sub mono" }, `…${key.hint}`),
      element("p", { class: "sub" }, `${key.canWrite ? "Reads and writes" : "Only reads"}, at ${inPlaces(key.locations)}`),
      element("p", { class: "sub" }, "Made ", when(key.createdAt), " · used ", key.lastUsedAt ? when(key.lastUsedAt) : "never")),
    element("button", { type: "button", class: "danger", id: `revoke-${key.id}`, "aria-label": `Revoke ${key.name}`, onclick: () => revokeKey(key, hooks) }, "Revoke"))));
}

function grants({ grants: rows, organizations, organizationId }, hooks) {
  if (!rows.length) return element("p", { class: "empty" }, "There are none. An assistant that asks you to read your business data is listed here once you allow it.");
  const names = new Map(organizations.map((each) => [each.id, each.name || each.id]));
  return element("ul", { class: "cards people" }, ...rows.map((grant) => element("li", {},
    element("div", {},
      element("span", { class: "name" }, grant.clientName),
      element("p", { class: "sub" },
        `Reads${grant.organizationId === organizationId ? "" : ` ${names.get(grant.organizationId) ?? grant.organizationId}`} for ${grant.clientHosts.join(", ") || "a program on your own computer"}`),
      element("p", { class: "sub" }, "Since ", when(grant.createdAt), " · used ", when(grant.lastUsedAt))),
    element("button", { type: "button", class: "danger", id: `end-${grant.id}`, "aria-label": `Stop ${grant.clientName}`, onclick: () => endGrant(grant, hooks) }, "Stop"))));
}

function endGrant(grant, hooks) {
  confirmed({ title: `Stop ${grant.clientName}?`, text: "It may read no more. It can ask you again.", keep: "Let it read", action: "Stop it" },
    () => hooks.attempt(() => callConsole("profile/end-grant", { grantId: grant.id })));
}

function sessions(rows, hooks) {
  return element("ul", { class: "cards people" }, ...rows.map((each) => element("li", {},
    element("div", {},
      element("span", { class: "name", title: each.userAgent }, browserOf(each.userAgent)), " ",
      each.isThis ? pill("good", "this browser") : null,
      element("p", { class: "sub" }, `From ${each.address || "an unknown address"} · used `, when(each.lastUsedAt), " · since ", when(each.createdAt))),
    each.isThis ? null : element("button", { type: "button", id: `end-${each.id}`, "aria-label": `Sign out ${browserOf(each.userAgent)}`, onclick: () =>
      hooks.attempt(() => callConsole("profile/end-session", { sessionId: each.id })) }, "Sign out"))));
}

function elsewhere({ organizations, organizationId }, hooks) {
  const others = organizations.filter((each) => each.id !== organizationId);
  if (!others.length) return [];
  return [element("section", {}, element("h2", {}, "Your other organizations"),
    element("ul", { class: "cards people" }, ...others.map((each) => element("li", {},
      element("div", {}, element("span", { class: "name" }, each.name || each.id), element("p", { class: "sub" }, `${each.role}, at ${inPlaces(each.locations)}`)),
      element("button", { type: "button", id: `choose-${each.id}`, onclick: () =>
        hooks.attempt(async () => {
          await callConsole("profile/choose-organization", { organizationId: each.id });
          location.reload();  // nothing that is shown is of the other one
        }) }, "Go there")))))];
}

function newKey(here, hooks) {
  const grants = [["read", "Only read"], ["write", "Read and write, as an agent"]];
  openForm({
    title: "New API key", action: "Make the key",
    text: "It acts as you, and ends with your membership.",
    fields: [
      { name: "name", label: "Name", required: true, maxlength: 128, autocomplete: "off", hint: "What it is for: it is named in lists." },
      { name: "grant", label: "What it may do", options: here.role === "viewer" ? grants.slice(0, 1) : grants },
      { name: "places", label: "Locations", type: "lines", hint: PLACES_HINT },
    ],
  }, async ({ name, grant, places }) => {
    const made = await callConsole("profile/create-key", { name: name.trim(), canWrite: grant === "write", locations: placesOf(places) });
    hooks.refresh();
    return () => showSecret({ title: `The key ${made.key.name}`, text: "It is shown only now, and kept nowhere: copy it to where it is used.", value: made.secret });
  }, hooks.left);
}

function revokeKey(key, hooks) {
  confirmed({ title: `Revoke ${key.name}?`, text: "What uses it is refused within seconds. It does not come back.", keep: "Keep it", action: "Revoke" },
    () => hooks.attempt(() => callConsole("profile/revoke-key", { keyId: key.id })));
}

function endOthers(others, hooks) {
  hooks.attempt(async () => {
    for (const each of others) {
      try {
        await callConsole("profile/end-session", { sessionId: each.id });
      } catch (error) {
        if (error.status !== 404) throw error;  // it has ended by itself
      }
    }
  });
}

function newPassword(hooks) {
  openForm({
    title: "Change password", action: "Change it",
    text: "You are signed out everywhere else. Your keys stay.",
    fields: [
      { name: "old", label: "Password until now", type: "password", required: true, autocomplete: "current-password" },
      { name: "password", label: "New password", type: "password", required: true, minlength: PASSWORD_MIN, maxlength: 256, autocomplete: "new-password", hint: `At least ${PASSWORD_MIN} characters.` },
      { name: "again", label: "New password again", type: "password", required: true, autocomplete: "new-password" },
    ],
  }, async ({ old, password, again }) => {
    if (password !== again) throw new Error("The two new passwords are not the same.");
    await callConsole("profile/change-password", { oldPassword: old, newPassword: password });
    at("announced").textContent = "Your password is changed.";
    hooks.refresh();
  }, hooks.left);
}

function browserOf(agent) {
  const word = (names) => names.find(([part]) => agent.includes(part))?.[1];
  const [browser, system] = [word(BROWSERS), word(SYSTEMS)];
  return browser ? `${browser}${system ? ` on ${system}` : ""}` : agent.slice(0, 60) || "An unknown browser";
}
