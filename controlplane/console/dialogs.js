// Opens dialogs, moves the focus back when they close, and closes menus.

import { byId } from "./elements.js";

// For each dialog that is open or still closing, the function that completes its closing.
const unfinished = new WeakMap();

// Opens a dialog. `onClosed` is called after the dialog has closed. The view may be replaced while the dialog
// is open. Therefore, when the dialog closes, the element that had the focus is found by its id. The close event arrives
// with a delay. If the user has moved the focus meanwhile, it stays there.
export function openDialog(dialog, onClosed) {
  const opener = document.activeElement?.id;
  // The dialog may be opened again before the close event arrives.
  unfinished.get(dialog)?.();
  unfinished.set(dialog, () => {
    unfinished.delete(dialog);
    onClosed();
    const { activeElement, body } = document;
    if (activeElement === body || dialog.contains(activeElement)) focusOn(opener);
  });
  dialog.returnValue = "";
  dialog.onclose = () => { if (!dialog.open) unfinished.get(dialog)?.(); };
  dialog.showModal();
}

// Moves the focus to an element, or to the view if the element is gone or disabled.
export function focusOn(id) {
  const target = id && byId(id);
  if (target && !target.disabled) target.focus({ preventScroll: true });
  else byId("view").focus({ preventScroll: true });
}

// A menu closes when the user presses Escape, clicks elsewhere, or moves the focus out of it.
export function prepareMenu(menu) {
  menu.addEventListener("focusout", (event) => {
    if (event.relatedTarget && !menu.contains(event.relatedTarget)) menu.open = false;
  });
}

const openMenus = () => document.querySelectorAll("details.menu[open]");
addEventListener("keydown", (event) => {
  if (event.key !== "Escape") return;
  for (const menu of openMenus()) {
    menu.open = false;
    menu.querySelector("summary").focus();
  }
});
addEventListener("pointerdown", (event) => {
  for (const menu of openMenus()) if (!menu.contains(event.target)) menu.open = false;
});
// A click in the frame of a report causes no pointer event in this document. It moves the focus into the frame.
addEventListener("blur", () => {
  for (const menu of openMenus()) if (document.activeElement?.localName === "iframe") menu.open = false;
});
