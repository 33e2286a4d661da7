// Finds and creates elements. Text is never parsed as markup.

export const byId = (id) => document.getElementById(id);

export function element(name, attributes = {}, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else node.setAttribute(key, value === true ? "" : value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

// The CSS class of each status.
const STATUS_CLASSES = {
  healthy: "good", warning: "warn", broken: "bad", offline: "bad", "never-connected": "bad", revoked: "muted",
  online: "good", unknown: "muted", queued: "busy", received: "busy", running: "busy",
  completed: "good", partial: "warn", failed: "bad", expired: "muted",
  sent: "good", pending: "busy",
  good: "good", warn: "warn", bad: "bad", muted: "muted",
};
// The texts of statuses. The text of any other status is its name.
const STATUS_TEXTS = { "never-connected": "never connected", good: "fine", warn: "warning", bad: "broken", muted: "no verdict" };

export const pill = (status, text = STATUS_TEXTS[status] || status) =>
  element("span", { class: `pill ${STATUS_CLASSES[status] || ""}` }, text);
export const dot = (status) =>
  element("span", { class: `dot ${STATUS_CLASSES[status] || "muted"}`, role: "img", "aria-label": STATUS_TEXTS[status] || status, title: STATUS_TEXTS[status] || status });

function describeAge(timestamp) {
  const seconds = Math.max(0, Math.round((Date.now() - new Date(timestamp)) / 1000));
  if (seconds < 10) return "now";
  if (seconds < 60) return `${Math.floor(seconds / 10) * 10} s ago`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ago`;
  if (seconds < 86400) return `${Math.floor(seconds / 3600)} h ago`;
  return `${Math.floor(seconds / 86400)} d ago`;
}

// Formats a timestamp in the time zone of the browser, with the name of the zone.
export const exactTime = (timestamp) =>
  new Date(timestamp).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "long" });

// Shows the age of a timestamp. The title has the exact time.
export const timeAgo = (timestamp) =>
  timestamp ? element("time", { datetime: timestamp, title: exactTime(timestamp) }, describeAge(timestamp)) : "–";

export const browserZone = () => Intl.DateTimeFormat().resolvedOptions().timeZone;

export function formatDuration(from, to) {
  const seconds = (new Date(to) - new Date(from)) / 1000;
  return seconds < 60 ? `${seconds.toFixed(1)} s` : `${Math.round(seconds / 60)} min`;
}

export const plural = (count, word) => `${count.toLocaleString()} ${word}${count === 1 ? "" : "s"}`;

// Replaces the children only if they differ, so that a refresh keeps the focus and the selection.
export function replace(parent, ...children) {
  const fresh = element("div", {}, ...children);
  if (parent.innerHTML === fresh.innerHTML) return;
  const find = finder(parent, document.activeElement);
  const wasVisible = isInWindow(document.activeElement);
  parent.replaceChildren(...fresh.childNodes);
  find()?.focus({ preventScroll: true });
  // The new children before the focused element can be taller than the old ones, and move it out of the window.
  if (wasVisible && !isInWindow(document.activeElement)) document.activeElement.scrollIntoView({ block: "nearest" });
}

function isInWindow(node) {
  const { top, bottom } = node.getBoundingClientRect();
  return top >= 0 && bottom <= innerHeight;
}

// Returns a function that finds the focused element again after a replacement: by its id, or by its
// position among the elements with the same link or value.
function finder(parent, focused) {
  if (!focused || focused === parent || !parent.contains(focused)) return () => null;
  // If the element no longer exists, the view gets the focus.
  if (focused.id) return () => byId(focused.id) || byId("view");
  const target = (each) => each.getAttribute("href") || each.getAttribute("value");
  const alike = () => [...parent.querySelectorAll(focused.localName)].filter((each) => target(each) === target(focused));
  const index = alike().indexOf(focused);
  return () => alike()[index] || byId("view");
}
