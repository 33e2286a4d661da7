// Shows the view that the address names, and updates it. A stream sends changes, and a periodic reload finds changes
// that the stream missed.

import { accountViews } from "./accounts.js";
import { endOutage, isOutage, outagePage, prepareOutages, showOutage, updateButtons } from "./availability.js";
import { call, readChanges, hasKey, exchangeLink } from "./facade.js";
import { fetchDevice, showDevice } from "./device.js";
import { nameOf } from "./device_names.js";
import { fetchDevices, showDevices } from "./devices.js";
import { focusOn } from "./dialogs.js";
import { byId, element } from "./elements.js";
import { FIGURES, updateFiguresLink } from "./figures.js";
import { fetchFindings, showFindings } from "./findings.js";
import { openConfirmation } from "./forms.js";
import { fetchHome, showHome } from "./home.js";
import { codeOfInvitation, prepareJoining, showJoining } from "./joining.js";
import { fetchPrinters, showPrinters } from "./printers.js";
import { fetchReport, showReport } from "./report.js";
import { currentLinkOf, routeOf } from "./routes.js";
import { accessEndedMessage, fetchOwnProfile, isSignedIn, prepareSignIn, showAccount, showSignIn } from "./signing_in.js";
import { cancelPending, createPending } from "./pending_requests.js";

// The time until a reload, if no change causes an earlier one.
const RELOAD_MS = 60000;
// The minimum time between two reloads that changes cause.
const RELOAD_MIN_MS = 2000;
// In a large fleet, something always changes, and changes cause reloads. Therefore the time between two of these
// reloads is also at least this multiple of the time that a reload takes.
const RELOAD_FACTOR = 40;
// The first and the longest wait after a failure. The wait doubles with each consecutive failure.
const RETRY_MS = 3000;
const RETRY_MAX_MS = 15000;
// The time between two updates of the ages in the view.
const TICK_MS = 10000;
// If the new view takes longer than this to load, the content of the previous address is removed.
const LOADING_MS = 2000;
// The stream sends the changes of at most this many devices of a view.
const STREAMED_MAX = 200;

// `data` is the data of the view at `address`. It was loaded at `loadedAt`, and loading took `durationMs`. `pages`
// is the number of pages to load. `problem` is the error of the last action. `failures` counts consecutive failures.
// `isFocusDue` is whether the next view that is shown gets the focus.
const state = { data: null, address: "", pages: 1, problem: "", failures: 0, loadedAt: 0, durationMs: 0, isFocusDue: false };
let timer = 0;
// The time of the next refresh in milliseconds since 1970.
let nextRefreshMs = Infinity;
// The number of the newest refresh. The result of an older refresh is ignored.
let newestRefresh = 0;
const NO_STREAM = { ids: null, stop: () => {} };
let stream = NO_STREAM;

// `load` returns the data of a view, and `show` draws it. `rows` returns the devices in the data that the stream of
// changes updates, or null. `title` returns the title of the page. A view can have its own time until a reload
// (`reloadMs`). If `pausesWhenHidden`, the view is not reloaded while the page is hidden.
const VIEWS = {
  home: { load: fetchHome, show: (data) => showHome(data, byId("view")), title: () => "Overview", rows: (data) => data.rows },
  devices: {
    load: (route) => fetchDevices(route.filters, state.pages),
    show: (data) => showDevices(data, byId("view"), listActions),
    title: () => "Devices",
    rows: (data) => data.rows,
  },
  printers: {
    load: (route) => fetchPrinters(route.filters, state.pages),
    show: (data) => showPrinters(data, byId("view"), {
      more: listActions.more, filter: (filters) => location.replace(`#/printers?${new URLSearchParams(filters)}`),
    }),
    title: () => "Printers",
    rows: () => null,
  },
  findings: {
    load: (route) => fetchFindings(route.filters, state.pages),
    show: (data) => showFindings(data, byId("view"), {
      more: listActions.more, attempt: listActions.attempt,
      filter: (filters) => { location.hash = `#/findings?${new URLSearchParams(filters)}`; },
    }),
    title: () => "Findings",
    rows: () => null,
  },
  device: {
    load: (route) => fetchDevice(route.id, state.pages),
    show: (data) => showDevice(data, byId("view"), state.problem, deviceActions(data.row)),
    title: (data) => nameOf(data.row.device),
    rows: (data) => [data.row],
  },
  report: {
    // A report never changes: it is fetched once.
    load: (route) => (state.address === location.hash && state.data ? state.data : fetchReport(route.id)),
    show: (data) => { if (!byId("view").querySelector(".report")) showReport(data, byId("view"), attemptSaving); },
    title: (data) => `${nameOf(data.row.device)}, ${data.detail.kind} report`,
    rows: () => null,
  },
  unknown: {
    load: async () => ({}),
    show: (_, view) => { if (!view.firstChild) view.replaceChildren(notFound("There is no page at this address.")); },
    title: () => "Not found",
    rows: () => null,
  },
  ...FIGURES,
  ...accountViews({
    refresh: () => refresh(), sessionEnded: () => resetToSignIn(accessEndedMessage("")), attempt: (action) => attempt(action),
    pages: () => state.pages, more: () => listActions.more(),
    filter: (view, filters) => location.replace(`#/${view}?${new URLSearchParams(filters)}`),
  }),
};

const route = () => routeOf(location.hash);

function resetToSignIn(problem = "") {
  clearTimeout(timer);
  newestRefresh += 1;
  stream.stop();
  stream = NO_STREAM;
  state.data = null;
  byId("bar").hidden = byId("view").hidden = true;
  byId("view").replaceChildren();
  byId("view").dataset.view = "";
  updateFiguresLink(null);
  endOutage();
  document.title = "Venue control";
  showSignIn(problem);
}

function refreshIn(ms) {
  const time = Date.now() + ms;
  if (time >= nextRefreshMs) return;  // the earlier refresh remains
  clearTimeout(timer);
  nextRefreshMs = time;
  timer = setTimeout(() => (document.hidden && VIEWS[route().view].pausesWhenHidden ? pauseRefreshes() : refresh()), ms);
}

// The view is refreshed when the page becomes visible again.
const pauseRefreshes = () => { nextRefreshMs = Infinity; };

async function refresh() {
  clearTimeout(timer);
  nextRefreshMs = Infinity;
  newestRefresh += 1;
  const thisRefresh = newestRefresh;
  const currentRoute = route();
  const startedAtMs = Date.now();
  const address = location.hash;
  const loading = setTimeout(() => { if (thisRefresh === newestRefresh) showLoading(currentRoute); }, LOADING_MS);
  try {
    const data = await Promise.resolve(VIEWS[currentRoute.view].load(currentRoute)).finally(() => clearTimeout(loading));
    // The address may have changed already, although its hashchange event has not arrived yet.
    if (thisRefresh !== newestRefresh || address !== location.hash) return;
    state.failures = 0;
    state.loadedAt = Date.now();
    state.durationMs = state.loadedAt - startedAtMs;
    render(currentRoute, data);
    streamChanges(VIEWS[currentRoute.view].rows(data)?.map((row) => row.device.instanceId));
    showLive("Live", false);
    refreshIn(VIEWS[currentRoute.view].reloadMs || RELOAD_MS);
    updateFiguresLink(byId("nav-figures"));
  } catch (error) {
    if (thisRefresh !== newestRefresh) return;
    if (error.status === 401) return resetToSignIn(accessEndedMessage("The service does not know this key, or it was revoked."));
    showError(error, currentRoute);
    if (isSignedIn()) retry(error);
  }
}

function showLoading(currentRoute) {
  if (byId("view").hidden || byId("view").dataset.view === keyOf(currentRoute)) return;
  state.data = null;
  byId("view").dataset.view = "";
  byId("view").replaceChildren(element("div", { class: "sheet" }, element("p", { class: "empty" }, "Loading …")));
}

const keyOf = ({ view, id }) => view + (id || "");

function render(currentRoute, data) {
  const view = VIEWS[currentRoute.view];
  state.data = data;
  state.address = location.hash;
  byId("sign-in").hidden = true;
  byId("bar").hidden = byId("view").hidden = false;
  showAccount();
  endOutage();
  if (byId("view").dataset.view !== keyOf(currentRoute)) {
    byId("view").dataset.view = keyOf(currentRoute);
    byId("view").replaceChildren();
    byId("view").scrollTop = 0;
  }
  show(currentRoute.view);
  if (state.isFocusDue) byId("view").focus({ preventScroll: true });
  state.isFocusDue = false;
  setTitle(view.title(data), currentRoute);
}

function show(name) {
  VIEWS[name].show(state.data, byId("view"));
  updateButtons();
}

function setTitle(title, currentRoute) {
  document.title = `${title} · Venue control`;
  const current = currentLinkOf(currentRoute.view);
  for (const each of ["home", "devices", "findings", "printers", "figures"]) byId(`nav-${each}`).ariaCurrent = each === current ? "page" : null;
}

// ---------------------------------------------------------------------------- changes

// Opens a stream of the changes of these devices. If `ids` is undefined, only ends the previous stream.
function streamChanges(ids) {
  const instanceIds = ids?.slice(0, STREAMED_MAX);
  if (stream.ids === instanceIds?.join()) return;
  stream.stop();
  stream = NO_STREAM;
  if (!instanceIds) return;
  const control = new AbortController();
  stream = { ids: instanceIds.join(), stop: () => control.abort() };
  readStream(instanceIds, control.signal);
}

async function readStream(instanceIds, signal) {
  try {
    for await (const [event, row] of readChanges({ instanceIds }, signal)) {
      if (signal.aborted) return;
      if (event === "device") applyChange(row);
      else refreshIn(Math.max(0, state.loadedAt + Math.max(RELOAD_MIN_MS, RELOAD_FACTOR * state.durationMs) - Date.now()));
    }
  } catch (error) {
    if (!signal.aborted && error.status === 401) return resetToSignIn(accessEndedMessage("The key was revoked."));
  }
  if (signal.aborted) return;
  stream = NO_STREAM;
  retry();
}

function applyChange(row) {
  const currentRoute = route();
  if (!state.data || state.address !== location.hash) return;
  const rows = VIEWS[currentRoute.view].rows(state.data) || [];
  const index = rows.findIndex((each) => each.device.instanceId === row.device.instanceId);
  if (index < 0 || JSON.stringify(rows[index]) === JSON.stringify(row)) return;
  const isHistoryChanged = JSON.stringify([rows[index].requests, rows[index].reports]) !== JSON.stringify([row.requests, row.reports]);
  if (currentRoute.view === "device") state.data.row = row;
  else rows[index] = row;
  show(currentRoute.view);
  if (currentRoute.view === "device" && isHistoryChanged) refreshIn(0);
}

function retry(error) {
  state.failures += 1;
  const waitMs = Math.min(RETRY_MAX_MS, RETRY_MS * 2 ** (state.failures - 1));
  if (!document.hidden) refreshIn(Math.max(error?.waitSeconds * 1000 || 0, waitMs));
}

// ---------------------------------------------------------------------------- messages and actions

function showError(error, currentRoute) {
  const message = error.message || String(error);
  showLive(isOutage(error) ? message : "", isOutage(error));
  if (isOutage(error)) return showOutageError(message, currentRoute);
  if (byId("view").hidden) return resetToSignIn(message);
  // The data of the view is deleted. Otherwise the next update of the ages would show it in place of the error page,
  // and after a later outage, the error page would stay visible as the content of this address.
  state.data = null;
  byId("view").dataset.view = "";
  byId("view").replaceChildren(error.status === 404 ? notFound(message) : problemPage(error.status === 403 ? "No access" : "Not possible", message));
}

// The visible content stays if it belongs to the address, and is marked as old.
function showOutageError(message, currentRoute) {
  const isSame = byId("view").dataset.view === keyOf(currentRoute) && state.data !== null;
  if (!isSame) {
    byId("sign-in").hidden = true;
    byId("bar").hidden = byId("view").hidden = false;
    state.data = null;
    byId("view").dataset.view = "";
    byId("view").replaceChildren(outagePage(message));
    setTitle("Not available", currentRoute);
  }
  showOutage(message, isSame ? state.loadedAt : 0);
}

const problemPage = (title, message) => element("div", { class: "sheet" },
  element("h1", {}, title), element("p", { class: "problem" }, message),
  element("p", {}, element("a", { href: "#/" }, "Back to the overview")));
const notFound = (message) => problemPage("Not found", message);

function showLive(text, isBad) {
  if (byId("live").textContent !== text) byId("live").textContent = text;
  byId("live").classList.toggle("bad", isBad);
}

const listActions = {
  data: () => state.data,
  more: () => { state.pages += 1; refresh(); },
  filter: (filters) => location.replace(`#/devices?${new URLSearchParams(filters)}`),
  attempt: (action) => attempt(action),
};

function deviceActions(row) {
  const { device } = row;
  const { instanceId } = device;
  const request = (kind) => attempt(() => call("createRequest", { instanceId, kind }));
  const requestLater = (kind) => attempt(async () => {
    const { refused } = await createPending([instanceId], kind);
    if (refused) throw new Error(`The request is refused: the device is revoked or does not support ${kind} reports.`);
  });
  return {
    "request-network": () => request("network"),
    "request-application": () => request("application"),
    "pending-network": () => requestLater("network"),
    "pending-application": () => requestLater("application"),
    "cancel-network": () => attempt(() => cancelPending(row, "network")),
    "cancel-application": () => attempt(() => cancelPending(row, "application")),
    revoke: () => confirmRevoke(device),
    older: () => { state.pages += 1; refresh(); },
  };
}

async function attempt(action) {
  try {
    await action();
    state.problem = "";
    if (byId("account-problem")) byId("account-problem").textContent = "";
  } catch (error) {
    if (error.status === 401) return resetToSignIn(accessEndedMessage("The key was revoked."));
    state.problem = error.message;
    for (const id of ["list-problem", "account-problem"]) if (byId(id)) byId(id).textContent = error.message;
  }
  refresh();
}

async function attemptSaving(action) {
  try {
    await action();
    byId("report-problem").textContent = "";
  } catch (error) {
    if (error.status === 401) return resetToSignIn(accessEndedMessage("The key was revoked."));
    byId("report-problem").textContent = error.message;
  }
}

function confirmRevoke(device) {
  openConfirmation({
    title: `Revoke ${nameOf(device)}?`, keep: "Keep", action: "Revoke",
    text: "The binding of the device ends now, and its open requests expire. To use the device again, enroll it again.",
  }, () => attempt(() => call("revoke", { instanceId: device.instanceId })));
}

function onSignedIn() {
  // A user whose invitation cannot be used may sign in instead. Then the address of the invitation is removed, because
  // a reload of the page would show the invitation again.
  if (codeOfInvitation()) history.replaceState(null, "", "/#/");
  state.isFocusDue = true;
  refresh();
}

prepareOutages();
prepareSignIn(onSignedIn, resetToSignIn);
prepareJoining(onSignedIn);
byId("skip").addEventListener("click", (event) => {
  event.preventDefault();  // the link must not change the address, which names the current view
  focusOn("view");
});
addEventListener("hashchange", ({ oldURL, newURL }) => {
  if (location.hash.startsWith("#/sign-in/") || codeOfInvitation()) return start();
  if (!isSignedIn()) return;
  // A new view gets the focus. A new filter does not move the focus.
  state.isFocusDue = oldURL.split("?")[0] !== newURL.split("?")[0];
  state.pages = 1;
  state.problem = "";
  refresh();
});
document.addEventListener("visibilitychange", () => {
  if (isSignedIn() && !document.hidden) refresh();
});
addEventListener("online", () => { if (isSignedIn()) refresh(); });
// Shows the view again: the ages in it change even without new data.
setInterval(() => {
  if (state.data && state.address === location.hash && !document.hidden) show(route().view);
}, TICK_MS);

// Shows the form of an invitation. A user who is signed in stays signed in until they have joined.
async function showInvitation(code) {
  clearTimeout(timer);
  newestRefresh += 1;
  byId("bar").hidden = byId("view").hidden = true;
  await showJoining(code);
}

// The service does not answer yet, so it is not known whether a user is signed in.
function startLater(message) {
  byId("view").hidden = false;
  byId("view").replaceChildren(outagePage(message));
  setTimeout(start, RETRY_MS);
}

async function start() {
  const [, code] = location.hash.match(/^#\/sign-in\/([\w-]+)$/) || [];
  if (code) {
    history.replaceState(null, "", "/#/");  // the link can be used once
    try {
      await exchangeLink(code);
    } catch (error) {
      if (!hasKey()) return resetToSignIn(error.message);
    }
  }
  try {
    if (codeOfInvitation()) return await showInvitation(codeOfInvitation());
    return hasKey() || await fetchOwnProfile() ? refresh() : resetToSignIn();
  } catch (error) {
    if (isOutage(error) && !codeOfInvitation()) return startLater(error.message);
    return resetToSignIn(error.message);
  }
}

start();
