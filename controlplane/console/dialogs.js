// A dialog over the view: opened, and the focus back where it came from; and what a menu does.

const unfinished = new WeakMap();

// The view may be drawn anew meanwhile: what opened the dialog is found again by its id.
export function openDialog(dialog, closed) {
  const opener = document.activeElement?.id;
  // It tells that it was closed a moment later: who is quick has opened it again by then.
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

// What is gone or can do nothing now leaves the focus to the view.
export function focusOn(id) {
  const wanted = id && document.getElementById(id);
  if (wanted && !wanted.disabled) wanted.focus({ preventScroll: true });
  else document.getElementById("view").focus({ preventScroll: true });
}

// As a menu does: Escape closes it, and so does going on.
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
