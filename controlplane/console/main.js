// Which view is shown, and its live refresh.

import { call, forgetKey, hasKey, keepKey, takeLink } from "./facade.js";
import { fetchDevice, showDevice } from "./device.js";
import { fetchDevices, showDevices } from "./devices.js";
import { element } from "./elements.js";
import { showReport } from "./report.js";

const REFRESH_MS = 3000;
const REFRESH_MAX_MS = 60000;

const at = (id) => document.getElementById(id);
const state = { list: { devices: [], isCut: false }, pages: 1, problem: "", shownReport: null, device: null, failures: 0 };
let timer = 0;
let turn = 0;

function route() {
  const [, view, id] = location.hash.match(/^#\/(device|report)\/([0-9a-f-]{36})$/) || [];
  return { view: view || "home", id: id || null };
}

function signedOut(problem = "") {
  forgetKey();
  clearTimeout(timer);
  turn += 1;
  state.shownReport = null;
  at("bar").hidden = at("panes").hidden = true;
  at("sign-in").hidden = false;
  at("sign-in-problem").textContent = problem;
  at("detail").replaceChildren();
  at("device-list").replaceChildren();
  at("key").focus();
}

async function refresh() {
  clearTimeout(timer);
  turn += 1;
  const mine = turn;
  const isWanted = () => mine === turn;
  let waitMs = REFRESH_MS;
  try {
    await update(isWanted);
    if (!isWanted()) return;
    state.failures = 0;
    live("Live", false);
  } catch (error) {
    if (!isWanted()) return;
    if (error.status === 401) return signedOut("The service does not know this key, or it was revoked.");
    state.failures += 1;
    waitMs = Math.max(error.waitSeconds * 1000 || 0, Math.min(REFRESH_MAX_MS, REFRESH_MS * 2 ** state.failures));
    explain(error);
  }
  if (!document.hidden) timer = setTimeout(refresh, waitMs);
}

async function update(isWanted) {
  const { view, id } = route();
  at("panes").classList.toggle("open", view !== "home");
  const list = await fetchDevices();
  if (!isWanted()) return;
  state.list = list;
  at("sign-in").hidden = true;
  at("bar").hidden = at("panes").hidden = false;
  if (view !== "report") state.device = id;
  listDevices();
  if (view === "device") {
    const detail = await fetchDevice(id, state.pages);
    if (isWanted()) {
      state.shownReport = null;
      showDevice(detail, state.problem, actions(id));
    }
  } else if (view === "report") {
    // A report never changes: it is fetched once.
    if (state.shownReport === id) return;
    const device = await showReport(id, isWanted);
    if (!isWanted()) return;
    state.shownReport = id;
    state.device = device;
    listDevices();
  } else home();
}

function listDevices() {
  showDevices(state.list, at("filter").value, state.device);
}

function home() {
  state.shownReport = null;
  const text = state.list.devices.length
    ? "Choose a device to see its requests and reports."
    : "No device has enrolled yet. Give an agent this service's address and an API key with a write grant.";
  at("detail").replaceChildren(element("div", { class: "sheet" }, element("p", { class: "empty" }, text)));
}

function explain(error) {
  if (at("panes").hidden) return signedOut(error.message || String(error));
  live(error.message || String(error), true);
  if (error.status === 404 || error.status === 403) {
    at("detail").replaceChildren(
      element("div", { class: "sheet" }, element("p", { class: "problem" }, error.message)));
  }
}

function live(text, isBad) {
  if (at("live").textContent !== text) at("live").textContent = text;
  at("live").classList.toggle("bad", isBad);
}

function actions(instanceId) {
  const ask = (kind) => attempt(() => call("createRequest", { instanceId, kind }));
  return {
    "ask-network": () => ask("network"),
    "ask-application": () => ask("application"),
    revoke: () => confirmRevoke(instanceId),
    older: () => { state.pages += 1; refresh(); },
  };
}

async function attempt(action) {
  try {
    await action();
    state.problem = "";
  } catch (error) {
    if (error.status === 401) return signedOut("The key was revoked.");
    state.problem = error.message;
  }
  refresh();
}

function confirmRevoke(instanceId) {
  const dialog = at("confirm");
  dialog.onclose = () => {
    if (dialog.returnValue === "revoke") attempt(() => call("revoke", { instanceId }));
  };
  dialog.returnValue = "";
  dialog.showModal();
}

at("sign-in-form").addEventListener("submit", (event) => {
  event.preventDefault();
  keepKey(at("key").value.trim());
  at("key").value = "";
  refresh();
});
at("sign-out").addEventListener("click", () => signedOut());
at("filter").addEventListener("input", listDevices);
addEventListener("hashchange", () => {
  if (location.hash.startsWith("#/sign-in/")) return start();
  state.pages = 1;
  state.problem = "";
  state.shownReport = null;
  refresh();
});
document.addEventListener("visibilitychange", () => {
  if (hasKey() && !document.hidden) refresh();
});

async function start() {
  const [, code] = location.hash.match(/^#\/sign-in\/([\w-]+)$/) || [];
  if (code) {
    history.replaceState(null, "", "/#/");  // the link is worth nothing any more
    try {
      await takeLink(code);
    } catch (error) {
      if (!hasKey()) return signedOut(error.message);
    }
  }
  return hasKey() ? refresh() : signedOut();
}

start();
