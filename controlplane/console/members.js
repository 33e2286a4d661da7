// The members of an organization and who is invited, for its owners.

import { callConsole } from "./facade.js";
import { element, exact, pill, replace, when } from "./elements.js";
import { PLACES_HINT, confirmed, inPlaces, openForm, placesOf, showSecret } from "./forms.js";
import { findPerson } from "./signing_in.js";

const at = (id) => document.getElementById(id);
const ROLES = [
  ["viewer", "Viewer: only reads"], ["manager", "Manager: reads and writes"],
  ["owner", "Owner: a manager who may manage members"],
];

export const fetchMembers = () => callConsole("members");

export function showMembers(data, view, hooks) {
  if (!at("members")) {
    view.replaceChildren(element("div", { class: "sheet", id: "members" },
      element("div", { class: "heading" }, element("h1", {}, "Members"),
        element("button", { type: "button", class: "primary", id: "invite", onclick: () => invite(hooks) }, "Invite somebody")),
      element("p", { class: "problem", role: "alert", id: "account-problem" }),
      element("div", { id: "member-rows" })));
  }
  replace(at("member-rows"),
    element("ul", { class: "cards people", id: "member-list" }, ...data.members.map((each) => row(each, data.members, hooks))),
    data.invitations.length ? element("section", {}, element("h2", {}, "Invited"),
      element("ul", { class: "cards people", id: "invited" }, ...data.invitations.map((each) => invited(each, hooks)))) : null);
}

const isWhole = (member) => member.role === "owner" && !member.locations.length;

// The last owner of every location can be neither: nobody else could make one.
function row(member, all, hooks) {
  const isLast = isWhole(member) && all.filter(isWhole).length === 1;
  return element("li", {},
    element("div", {},
      element("span", { class: "name" }, member.name), " ",
      member.isThis ? pill("good", "you") : null,
      element("p", { class: "sub" }, member.email),
      element("p", { class: "sub" }, element("span", { class: "role" }, member.role), ` at ${inPlaces(member.locations)} · since `, when(member.createdAt)),
      isLast ? element("p", { class: "sub" }, "The last owner stays one.") : null),
    isLast ? null : element("div", { class: "acts" },
      element("button", { type: "button", id: `change-${member.userId}`, "aria-label": `Change ${member.name}`, onclick: () => change(member, hooks) }, "Change"),
      element("button", { type: "button", class: "danger", id: `remove-${member.userId}`, "aria-label": `Remove ${member.name}`, onclick: () => remove(member, hooks) }, "Remove")));
}

const invited = (each, hooks) => element("li", {},
  element("div", {},
    element("span", { class: "name" }, each.email),
    element("p", { class: "sub" }, element("span", { class: "role" }, each.role), ` at ${inPlaces(each.locations)} · the link is good until ${exact(each.expiresAt)}`)),
  element("button", { type: "button", id: `take-back-${each.id}`, "aria-label": `Take back the invitation of ${each.email}`, onclick: () =>
    hooks.attempt(() => callConsole("members/revoke-invitation", { invitationId: each.id })) }, "Take back"));

const what = (role = "viewer", locations = []) => [
  { name: "role", label: "Role", options: ROLES, value: role },
  { name: "places", label: "Locations", type: "lines", value: locations.join("\n"), hint: PLACES_HINT },
];

function invite(hooks) {
  openForm({
    title: "Invite somebody", action: "Make the link",
    text: "You get a link to send them. It is good for one person, once, for 24 hours.",
    fields: [{ name: "email", label: "Their e-mail address", required: true, maxlength: 254, inputmode: "email", autocomplete: "off", autocapitalize: "none", spellcheck: "false" }, ...what()],
  }, async ({ email, role, places }) => {
    const made = await callConsole("members/invite", { email: email.trim(), role, locations: placesOf(places) });
    hooks.refresh();
    return () => showSecret({
      title: `The link for ${made.invitation.email}`, value: `${location.origin}${made.path}`,
      text: "It is shown only now. Whoever opens it may join, so send it to nobody else.",
    });
  }, hooks.left);
}

function change(member, hooks) {
  openForm({ title: `Change ${member.name}`, action: "Change", text: "It holds within seconds, for their keys, too.", fields: what(member.role, member.locations) },
    async ({ role, places }) => {
      await callConsole("members/change", { userId: member.userId, role, locations: placesOf(places) });
      if (member.isThis) await findPerson();
      hooks.refresh();
    }, hooks.left);
}

function remove(member, hooks) {
  confirmed({
    title: `Remove ${member.name}?`, keep: "Keep them", action: "Remove",
    text: `${member.email} may see nothing here any more. Their sessions here end, and so do the keys they made here: agents that use those are refused.`,
  }, () => hooks.attempt(() => callConsole("members/remove", { userId: member.userId })));
}
