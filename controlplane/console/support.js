// How support is reached, and what of support's is linked with the organizations of who is signed in.
// A link is made and ended by the token that support gives out, which is kept nowhere.

import { support } from "./facade.js";
import { element, exact, replace, when } from "./elements.js";
import { openForm } from "./forms.js";
import { organizationName } from "./signing_in.js";

const at = (id) => document.getElementById(id);
const TOKEN = { name: "token", label: "Token", required: true, pattern: "[A-Za-z0-9_\\-]{43}", maxlength: 43, autocomplete: "off", spellcheck: "false", hint: "43 characters, as support gave it to you." };
const OVER = {
  confirmed: "This token has been used: its link is in the list.",
  disconnected: "This token has been used, and its link was ended. Ask support for another one.",
  expired: "This token has run out. Ask support for another one.",
};

export const fetchSupport = () => support("contact");

export function showSupport(data, view, hooks) {
  if (!at("support")) {
    view.replaceChildren(element("div", { class: "sheet", id: "support" },
      element("div", { class: "heading" }, element("h1", {}, "Support"),
        element("button", { type: "button", class: "primary", id: "link", onclick: () => look(hooks) }, "Link with support")),
      element("p", { class: "problem", role: "alert", id: "account-problem" }),
      element("div", { id: "channels" }),
      element("section", {}, element("div", { class: "heading" }, element("h2", {}, "Linked"),
        element("button", { type: "button", id: "unlink", onclick: () => end(hooks) }, "End a link")), element("div", { id: "links" }))));
  }
  replace(at("channels"), channels(data.channels));
  replace(at("links"), links(data.links));
  at("unlink").hidden = !data.links.length;
}

function channels(rows) {
  if (!rows.length) return element("p", { class: "empty" }, "This service names no way to reach support.");
  return element("ul", { class: "cards people" }, ...rows.map((each) => element("li", {},
    element("div", {}, element("span", { class: "name" }, each.address),
      element("p", { class: "sub" }, [each.kind, each.hours].filter(Boolean).join(" · "))))));
}

function links(rows) {
  if (!rows.length) return element("p", { class: "empty" }, "Nothing. Support gives you a token where it wants to be linked with a chat or a mailbox of yours.");
  return element("ul", { class: "cards people" }, ...rows.map((each) => element("li", {},
    element("div", {}, element("span", { class: "name" }, each.channel),
      element("p", { class: "sub" }, `Asked by ${each.requestedBy} · ${organizationName(each.organizationId)} · since `, when(each.confirmedAt))))));
}

// First what the token would link, then whether it shall.
function look(hooks) {
  openForm({ title: "Link with support", action: "Show what it links", text: "You see what the token is for before anything is linked.", fields: [TOKEN] },
    async ({ token }) => {
      const found = await support("inspect", { token });
      if (found.state !== "waiting") throw new Error(OVER[found.state]);
      if (!found.organizations.length) throw new Error("Only an owner or a manager of every location links an organization.");
      return () => confirm(token, found, hooks);
    }, hooks.left);
}

function confirm(token, found, hooks) {
  openForm({
    title: `Link ${found.channel}?`, action: "Link it",
    text: `Asked by ${found.requestedBy}. The token is good until ${exact(found.expiresAt)}.`,
    fields: [{ name: "organization", label: "Organization", options: found.organizations.map((each) => [each.id, each.name || each.id]) }],
  }, async ({ organization }) => {
    await support("confirm", { token, organizationId: organization });
    hooks.refresh();
  }, hooks.left);
}

function end(hooks) {
  openForm({ title: "End a link", action: "End it", text: "Support itself can end a link, too, if you no longer have its token.", fields: [TOKEN] },
    async ({ token }) => {
      await support("disconnect", { token });
      hooks.refresh();
    }, hooks.left);
}
