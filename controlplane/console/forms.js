// Dialogs: a form, a confirmation, and a dialog that shows a secret once.

import { openDialog } from "./dialogs.js";
import { element } from "./elements.js";

const at = (id) => document.getElementById(id);
export const LOCATIONS_HINT = "One location id per line. Empty means every location.";

export const parseLocations = (text) => [...new Set(text.split("\n").map((each) => each.trim()).filter(Boolean))];
export const describeLocations = (locations) => locations.length ? locations.join(", ") : "every location";

// `fields` are { name, label, type, value, options, hint, ... }. `act` is called with an object that has
// the value of each field by its name. If `act` throws, the dialog stays open and shows the error. If the
// session has ended, the dialog closes and `left` is called. If `act` returns a function, the function is
// called after the dialog has closed.
export function openForm({ title, text, fields, action }, act, left) {
  const dialog = at("form");
  const problem = element("p", { class: "problem", role: "alert" });
  const submit = element("button", { class: "primary", type: "submit", id: "form-submit" }, action);
  const form = element("form", { onsubmit: async (event) => {
    event.preventDefault();
    submit.disabled = true;
    problem.textContent = "";
    try {
      const then = await act(Object.fromEntries(new FormData(form)));
      dialog.close();
      then?.();
    } catch (error) {
      if (error.status === 401) {
        dialog.close();
        left();
      }
      problem.textContent = error.message;
    } finally {
      submit.disabled = false;
    }
  } },
    element("h2", { id: "form-title" }, title),
    text ? element("p", {}, text) : null,
    ...fields.map(fieldOf),
    problem,
    element("div", { class: "actions" },
      element("button", { type: "button", onclick: () => dialog.close() }, "Cancel"), submit));
  openDialog(dialog, () => dialog.replaceChildren());
  dialog.replaceChildren(form);
  form.querySelector("input, select, textarea")?.focus();
}

function fieldOf({ name, label, type = "text", value = "", options, hint, ...others }) {
  const id = `form-${name}`;
  const described = hint ? { "aria-describedby": `${id}-hint` } : {};
  const attributes = { id, name, ...described, ...others };
  const field = options ? element("select", attributes, ...options.map(([each, word]) => element("option", { value: each, selected: each === value }, word)))
    : type === "lines" ? element("textarea", { rows: 2, spellcheck: "false", ...attributes }, value)
      : element("input", { type, value, ...attributes });
  return element("div", { class: "asked" },
    element("label", { for: id }, label), field,
    hint ? element("p", { class: "sub", id: `${id}-hint` }, hint) : null);
}

export function openConfirmation({ title, text, keep, action }, act) {
  const dialog = at("confirm");
  at("confirm-title").textContent = title;
  at("confirm-text").textContent = text;
  at("confirm-keep").textContent = keep;
  at("confirm-act").textContent = action;
  openDialog(dialog, () => {
    if (dialog.returnValue === "act") act();
  });
}

// The secret is in the page only while the dialog is open.
export function showSecret({ title, text, value }) {
  const dialog = at("form");
  const field = element("input", { id: "secret", class: "mono", readonly: true, value, "aria-label": title });
  const status = element("span", { role: "status", class: "sub" });
  const copy = async () => {
    field.select();
    try {
      await navigator.clipboard.writeText(value);
      status.textContent = "Copied.";
    } catch {
      status.textContent = "Selected. Copy it with the keyboard.";  // without TLS, browsers do not allow access to the clipboard
    }
  };
  openDialog(dialog, () => dialog.replaceChildren());
  dialog.replaceChildren(element("form", { method: "dialog" },
    element("h2", { id: "form-title" }, title),
    element("p", {}, text),
    element("div", { class: "secret" }, field, element("button", { type: "button", id: "copy", onclick: copy }, "Copy")),
    element("div", { class: "actions" }, status, element("button", { class: "primary", id: "secret-done" }, "Done"))));
  field.select();
}
