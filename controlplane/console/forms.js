// Dialogs: a form, a confirmation, and a dialog that shows a secret once. Also helpers for the filters of lists.

import { openDialog } from "./dialogs.js";
import { byId, element, replace } from "./elements.js";

// The filters are applied this long after the last key in a search field.
const TYPING_MS = 250;

// Calls `apply` after each change of the filters in a form.
export function onFilterInput(form, search, apply) {
  let timer = 0;
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("input", (event) => {
    clearTimeout(timer);
    timer = setTimeout(apply, event.target === search ? TYPING_MS : 0);
  });
}

// Sets the choices and the value of a filter, unless it has the focus. A value that is not among the choices is added.
export function fillSelect(select, choices, selectedValue = "") {
  if (select === document.activeElement) return;
  const all = choices.some(([value]) => value === selectedValue) ? choices : [...choices, [selectedValue, selectedValue]];
  replace(select, ...all.map(([value, text]) => element("option", { value }, text)));
  select.value = selectedValue;
}

// `names` maps the ids of locations to their names. An id without a name is shown as it is.
export const describeLocations = (locations, names = new Map()) =>
  locations.length ? locations.map((each) => names.get(each) || each).join(", ") : "every location";

// Returns the form field with a checkbox for each location. Its value is the list of the checked locations' ids.
export const locationsField = (names, selectedIds = []) => ({
  name: "locations", label: "Locations", type: "choices", value: selectedIds, hint: "Nothing checked means every location.",
  options: [...new Map([...names, ...selectedIds.filter((each) => !names.has(each)).map((each) => [each, each])])],
});

// `fields` are { name, label, type, value, options, hint, ... }. `options` are pairs of a value and its text, from
// which the user chooses. `act` is called with an object that has the value of each field by its name. If `act` throws,
// the dialog stays open and shows the error. If the session has ended, the dialog closes and `sessionEnded` is called.
// If `act` returns a function, the function is called after the dialog has closed.
export function openForm({ title, text, fields, action }, act, sessionEnded) {
  const dialog = byId("form");
  const problem = element("p", { class: "problem", role: "alert" });
  const submit = element("button", { class: "primary", type: "submit", id: "form-submit" }, action);
  const form = element("form", { onsubmit: async (event) => {
    event.preventDefault();
    submit.disabled = true;
    problem.textContent = "";
    try {
      const data = new FormData(form);
      const lists = fields.filter(({ type }) => type === "choices").map(({ name }) => [name, data.getAll(name)]);
      const followUp = await act({ ...Object.fromEntries(data), ...Object.fromEntries(lists) });
      dialog.close();
      followUp?.();
    } catch (error) {
      if (error.status === 401) {
        dialog.close();
        sessionEnded();
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

// `type` is the type of an input, `lines` for a text of several lines, or `choices` for checkboxes. `suggest` returns
// suggestions for the text of the field.
export function fieldOf({ name, label, type = "text", value = "", options, hint, suggest, ...others }) {
  const id = `form-${name}`;
  const described = hint ? { "aria-describedby": `${id}-hint` } : {};
  const attributes = { id, name, ...described, ...others };
  if (type === "choices") return choices(id, { name, label, value, options, hint });
  let field;
  if (options) field = element("select", attributes, ...options.map(([each, word]) => element("option", { value: each, selected: each === value }, word)));
  else if (type === "lines") field = element("textarea", { rows: 2, spellcheck: "false", ...attributes }, value);
  else field = element("input", { type, value, ...attributes });
  return element("div", { class: "form-field" },
    element("label", { for: id }, label), field, suggest ? suggestions(field, suggest) : null,
    hint ? element("p", { class: "sub", id: `${id}-hint` }, hint) : null);
}

// A list of suggestions. While the user types, only the reply to the newest call fills the list.
function suggestions(field, suggest) {
  const list = element("datalist", { id: `${field.id}-list` });
  let newest = 0;
  const update = async () => {
    const call = newest += 1;
    const values = await suggest(field.value.trim()).catch(() => []);
    if (call === newest) list.replaceChildren(...values.map((value) => element("option", { value })));
  };
  field.setAttribute("list", list.id);
  field.addEventListener("input", update);
  field.addEventListener("focus", update, { once: true });
  return list;
}

function choices(id, { name, label, value, options, hint }) {
  return element("fieldset", { class: "form-field choices", id, "aria-describedby": `${id}-hint` },
    element("legend", {}, label),
    element("div", { class: "scroll", tabindex: options.length > 5 ? "0" : null }, ...options.map(([each, word]) => element("label", {},
      element("input", { type: "checkbox", name, value: each, checked: value.includes(each) }), ` ${word}`))),
    element("p", { class: "sub", id: `${id}-hint` }, options.length ? hint : "There are no locations yet. Nothing checked means every location."));
}

// `keep` and `action` are the texts of the two buttons. `act` is called if the user chooses `action`.
export function openConfirmation({ title, text, keep, action }, act) {
  const dialog = byId("confirm");
  byId("confirm-title").textContent = title;
  byId("confirm-text").textContent = text;
  byId("confirm-keep").textContent = keep;
  byId("confirm-act").textContent = action;
  openDialog(dialog, () => {
    if (dialog.returnValue === "act") act();
  });
}

// Copies the text, and selects it in `source`. Without TLS, browsers refuse access to the clipboard, and the user
// copies the selected text with the keyboard.
export async function copyText(text, source, status) {
  if (source.select) source.select();
  else getSelection().selectAllChildren(source);
  try {
    await navigator.clipboard.writeText(text);
    status.textContent = "Copied.";
  } catch {
    status.textContent = "Selected. Copy it with the keyboard.";
  }
}

// The secret is in the page only while the dialog is open.
export function showSecret({ title, text, value }) {
  const dialog = byId("form");
  const attributes = { id: "secret", class: "mono", readonly: true, "aria-label": title };
  const lines = value.split("\n").length;
  const field = lines > 1 ? element("textarea", { ...attributes, rows: lines }, value) : element("input", { ...attributes, value });
  const status = element("span", { role: "status", class: "sub" });
  openDialog(dialog, () => dialog.replaceChildren());
  dialog.replaceChildren(element("form", { method: "dialog" },
    element("h2", { id: "form-title" }, title),
    element("p", {}, text),
    element("div", { class: "secret" }, field, element("button", { type: "button", id: "copy", onclick: () => copyText(value, field, status) }, "Copy")),
    element("div", { class: "actions" }, status, element("button", { class: "primary", id: "secret-done" }, "Done"))));
  field.select();
}
