// Marks the view while the service does not answer: a message shows the time of the content, states lose their colours,
// and buttons are disabled.

import { byId, element } from "./elements.js";

let isDown = false;

// A refusal with one of these statuses is about the call itself. Every other failure is an outage.
export const isOutage = ({ status }) => ![400, 401, 403, 404].includes(status);

// `loadedAt` is the time of the visible content in milliseconds, or 0 if no content is visible.
export function showOutage(message, loadedAt) {
  isDown = true;
  document.body.classList.add("outage");
  byId("outage").hidden = !loadedAt;
  const content = `${message} You see the state of ${new Date(loadedAt).toLocaleTimeString()}. This page updates itself when the service answers again.`;
  if (byId("outage").textContent !== content) byId("outage").textContent = content;
  updateButtons();
}

export function endOutage() {
  if (!isDown) return;
  isDown = false;
  document.body.classList.remove("outage");
  byId("outage").hidden = true;
  byId("outage").textContent = "";
  updateButtons();
}

// Call this after each change of the view.
export function updateButtons() {
  for (const button of byId("view").querySelectorAll("[data-off]")) {
    delete button.dataset.off;
    button.ariaDisabled = null;
  }
  if (!isDown) return;
  for (const button of byId("view").querySelectorAll("button:not([aria-disabled])")) {
    button.dataset.off = "";
    button.ariaDisabled = "true";
  }
}

// Ignores clicks on the buttons that `updateButtons` has disabled.
export function prepareOutages() {
  byId("view").addEventListener("click", (event) => {
    if (event.target.closest("button[data-off]")) event.stopPropagation();
  }, { capture: true });
}

export const outagePage = (message) => element("div", { class: "sheet" },
  element("h1", {}, "Not available"),
  element("p", { class: "problem", role: "alert" }, message),
  element("p", { class: "lede" }, "The page that you opened appears when the service answers again."));
