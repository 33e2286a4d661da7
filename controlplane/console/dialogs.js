// A dialog over the view: opened, and the focus back where it came from.

// The view may be drawn anew meanwhile: what opened the dialog is found again by its id.
export function openDialog(dialog, closed) {
  const opener = document.activeElement?.id;
  dialog.returnValue = "";
  dialog.onclose = () => {
    closed();
    focusOn(opener);
  };
  dialog.showModal();
}

// What is gone or can do nothing now leaves the focus to the view.
export function focusOn(id) {
  const wanted = id && document.getElementById(id);
  if (wanted && !wanted.disabled) wanted.focus({ preventScroll: true });
  else document.getElementById("view").focus({ preventScroll: true });
}
