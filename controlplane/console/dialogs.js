// A dialog over the view: opened, and the focus back where it came from.

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
