// Opens dialogs and returns the focus afterwards; keyboard behavior of menus.

const unfinished = new WeakMap();

// The view may be replaced meanwhile: the opener is found again by its id.
export function openDialog(dialog, closed) {
  const opener = document.activeElement?.id;
  // The close event arrives later: the dialog may already be open again.
  unfinished.get(dialog)?.();
  unfinished.set(dialog, () => {
    unfinished.delete(dialog);
    closed();
    focusOn(opener);
  });
  dialog.returnValue = "";
  dialog.onclose = () => { if (!dialog.open) unfinished.get(dialog)?.(); };
  dialog.showModal();
}

// If the element is gone or disabled, the view gets the focus.
export function focusOn(id) {
  const wanted = id && document.getElementById(id);
  if (wanted && !wanted.disabled) wanted.focus({ preventScroll: true });
  else document.getElementById("view").focus({ preventScroll: true });
}

// Escape closes the menu, and so does leaving it.
export function asMenu(menu) {
  menu.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !menu.open) return;
    menu.open = false;
    menu.querySelector("summary").focus();
  });
  menu.addEventListener("focusout", (event) => {
    if (event.relatedTarget && !menu.contains(event.relatedTarget)) menu.open = false;
  });
}
