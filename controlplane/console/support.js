// The ways to contact support, and the links of chats and mailboxes with the user's organizations. A user creates and
// ends a link with a token from support. The console does not store the token.

import { callSupport } from "./facade.js";
import { byId, element, exactTime, replace, timeAgo } from "./elements.js";
import { openForm } from "./forms.js";
import { organizationName } from "./signing_in.js";

const TOKEN = { name: "token", label: "Token", required: true, pattern: "[A-Za-z0-9_\\-]{43}", maxlength: 43, autocomplete: "off", spellcheck: "false", hint: "43 characters, from support." };
// The problem with a token, by the state of its link.
const PROBLEMS = {
  confirmed: "This token was already used. Its link is in the list.",
  disconnected: "The link of this token has ended. Ask support for a new token.",
  expired: "This token has expired. Ask support for a new one.",
};

export const fetchSupport = () => callSupport("contact");

export function showSupport(data, view, hooks) {
  if (!byId("support")) {
    view.replaceChildren(element("div", { class: "sheet", id: "support" },
      element("div", { class: "heading" }, element("h1", {}, "Support"),
        element("button", { type: "button", class: "primary", id: "link", onclick: () => inspectToken(hooks) }, "Link with support")),
      element("p", { class: "problem", role: "alert", id: "account-problem" }),
      element("div", { id: "channels" }),
      element("section", {}, element("div", { class: "heading" }, element("h2", {}, "Links"),
        element("button", { type: "button", id: "unlink", onclick: () => endLink(hooks) }, "End a link")), element("div", { id: "links" }))));
  }
  replace(byId("channels"), channels(data.channels));
  replace(byId("links"), links(data.links));
  byId("unlink").hidden = !data.links.length;
}

function channels(rows) {
  if (!rows.length) return element("p", { class: "empty" }, "No support channels are configured.");
  return element("ul", { class: "cards people" }, ...rows.map((each) => element("li", {},
    element("div", {}, element("span", { class: "name" }, each.address),
      element("p", { class: "sub" }, [each.kind, each.hours].filter(Boolean).join(" · "))))));
}

function links(rows) {
  if (!rows.length) return element("p", { class: "empty" }, "There are no links. To link a chat or a mailbox, ask support for a token.");
  return element("ul", { class: "cards people" }, ...rows.map((each) => element("li", {},
    element("div", {}, element("span", { class: "name" }, each.channel),
      element("p", { class: "sub" }, `Requested by ${each.requestedBy} · ${organizationName(each.organizationId)} · since `, timeAgo(each.confirmedAt))))));
}

// Shows the channel that the token would link, and asks for the organization.
function inspectToken(hooks) {
  openForm({ title: "Link with support", action: "Continue", text: "Before you confirm, you see what the token links.", fields: [TOKEN] },
    async ({ token }) => {
      const link = await callSupport("inspect", { token });
      if (link.state !== "waiting") throw new Error(PROBLEMS[link.state]);
      if (!link.organizations.length) throw new Error("Only an owner or a manager with access to all locations can link an organization.");
      return () => confirmLink(token, link, hooks);
    }, hooks.sessionEnded);
}

function confirmLink(token, link, hooks) {
  openForm({
    title: `Link ${link.channel}?`, action: "Link",
    text: `Requested by ${link.requestedBy}. The token is valid until ${exactTime(link.expiresAt)}.`,
    fields: [{ name: "organization", label: "Organization", options: link.organizations.map((each) => [each.id, each.name || each.id]) }],
  }, async ({ organization }) => {
    await callSupport("confirm", { token, organizationId: organization });
    hooks.refresh();
  }, hooks.sessionEnded);
}

function endLink(hooks) {
  openForm({ title: "End a link", action: "End link", text: "If you no longer have the token, ask support to end the link.", fields: [TOKEN] },
    async ({ token }) => {
      await callSupport("disconnect", { token });
      hooks.refresh();
    }, hooks.sessionEnded);
}
