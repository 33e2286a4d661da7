// The members and invitations of an organization, for its owners.

import { callConsole } from "./facade.js";
import { byId, element, exactTime, pill, replace, timeAgo } from "./elements.js";
import { openConfirmation, describeLocations, locationsField, openForm, showSecret } from "./forms.js";
import { fetchLocationNames } from "./locations.js";
import { fetchOwnProfile } from "./signing_in.js";

const ROLES = [
  ["viewer", "Viewer: reads"], ["manager", "Manager: reads and writes"],
  ["owner", "Owner: also manages members"],
];

export async function fetchMembers() {
  const [data, names] = await Promise.all([callConsole("members"), fetchLocationNames()]);
  return { ...data, names };
}

export function showMembers(data, view, hooks) {
  if (!byId("members")) {
    view.replaceChildren(element("div", { class: "sheet", id: "members" },
      element("div", { class: "heading" }, element("h1", {}, "Members"),
        element("button", { type: "button", class: "primary", id: "invite" }, "Invite a member")),
      element("p", { class: "problem", role: "alert", id: "account-problem" }),
      element("div", { id: "member-rows" })));
  }
  byId("invite").onclick = () => invite(data.names, hooks);
  replace(byId("member-rows"),
    element("ul", { class: "cards people", id: "member-list" }, ...data.members.map((each) => row(each, data, hooks))),
    data.invitations.length ? element("section", {}, element("h2", {}, "Invitations"),
      element("ul", { class: "cards people", id: "invited" }, ...data.invitations.map((each) => invitationRow(each, data.names, hooks)))) : null);
}

const ownsAllLocations = (member) => member.role === "owner" && !member.locations.length;

// The last owner with access to all locations cannot be changed or removed.
function row(member, { members, names }, hooks) {
  const isLast = ownsAllLocations(member) && members.filter(ownsAllLocations).length === 1;
  return element("li", {},
    element("div", {},
      element("span", { class: "name" }, member.name), " ",
      member.isThis ? pill("good", "you") : null,
      element("p", { class: "sub" }, member.email),
      element("p", { class: "sub" }, element("span", { class: "role" }, member.role), ` at ${describeLocations(member.locations, names)} · since `, timeAgo(member.createdAt)),
      isLast ? element("p", { class: "sub" }, member.isThis ? "You are the last owner with access to every location, so your role cannot be changed." : "The last owner with access to every location cannot be changed.") : null),
    isLast ? null : element("div", { class: "acts" },
      element("button", { type: "button", id: `change-${member.userId}`, "aria-label": `Change ${member.name}`, onclick: () => change(member, names, hooks) }, "Change"),
      element("button", { type: "button", class: "danger", id: `remove-${member.userId}`, "aria-label": `Remove ${member.name}`, onclick: () => remove(member, hooks) }, "Remove")));
}

const invitationRow = (each, names, hooks) => element("li", {},
  element("div", {},
    element("span", { class: "name" }, each.email),
    element("p", { class: "sub" }, element("span", { class: "role" }, each.role), ` at ${describeLocations(each.locations, names)} · the link is valid until ${exactTime(each.expiresAt)}`)),
  element("button", { type: "button", id: `take-back-${each.id}`, "aria-label": `Revoke the invitation of ${each.email}`, onclick: () =>
    hooks.attempt(() => callConsole("members/revoke-invitation", { invitationId: each.id })) }, "Revoke"));

const roleFields = (names, role = "viewer", locations = []) => [
  { name: "role", label: "Role", options: ROLES, value: role },
  locationsField(names, locations),
];

function invite(names, hooks) {
  openForm({
    title: "Invite a member", action: "Create link",
    text: "You get a link to send to the new member. It can be used once, within 24 hours.",
    fields: [{ name: "email", label: "Their e-mail address", required: true, maxlength: 254, inputmode: "email", autocomplete: "off", autocapitalize: "none", spellcheck: "false" }, ...roleFields(names)],
  }, async ({ email, role, locations }) => {
    const reply = await callConsole("members/invite", { email: email.trim(), role, locations });
    hooks.refresh();
    return () => showSecret({
      title: `The link for ${reply.invitation.email}`, value: `${location.origin}${reply.path}`,
      text: "The link is not shown again. Anyone with the link can join, so send it only to the new member.",
    });
  }, hooks.sessionEnded);
}

function change(member, names, hooks) {
  openForm({ title: `Change ${member.name}`, action: "Change", text: "The change takes effect within seconds, also for their API keys.", fields: roleFields(names, member.role, member.locations) },
    async ({ role, locations }) => {
      await callConsole("members/change", { userId: member.userId, role, locations });
      if (member.isThis) await fetchOwnProfile();
      hooks.refresh();
    }, hooks.sessionEnded);
}

function remove(member, hooks) {
  openConfirmation({
    title: `Remove ${member.name}?`, keep: "Keep", action: "Remove",
    text: `${member.email} loses all access. Their sessions and the keys that they created here end: agents that use these keys are refused.`,
  }, () => hooks.attempt(() => callConsole("members/remove", { userId: member.userId })));
}
