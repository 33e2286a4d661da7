// The figures of one location, or of all locations together: totals of a period, by hour, by method of payment
// and by item.

import { callConsole, callFigures, Refusal } from "./facade.js";
import { clock, commonZone, currencyName, dateText, money, notes } from "./amounts.js";
import { saveSales } from "./downloads.js";
import { byId, element, plural, replace } from "./elements.js";
import { fetchPulses, totalOf } from "./pulses.js";
import { activity, hoursChart, items, locations, methods, totals } from "./venue_parts.js";

export const ALL = "figures-all";  // the address of the page for all locations
export const PERIODS = [["today", "Today"], ["yesterday", "Yesterday"], ["last7", "Last 7 days"], ["thisMonth", "This month"]];
const EMPTY = { today: "No sales today yet.", yesterday: "No sales yesterday.", last7: "No sales in the last 7 days.", thisMonth: "No sales this month yet." };
const COMPARED_MAX = 40;  // with more locations, the net of today is not compared with yesterday
const DAY_MS = 86400000;
// The gap between two charts side by side, and the minimum width of each of them, in pixels.
const GAP = 32;
const HALF_MIN = 384;
// The minimum width of a chart that has no other chart beside it, in pixels.
const WIDTH_MIN = 240;
const watcher = new ResizeObserver(() => redrawIfResized());
let redrawIfResized = () => {};
// The problem of the last attempt to save sales, and the address of the page on which the user tried it.
let problem = { address: "", text: "" };

export async function fetchVenue({ id, period }) {
  const { venues } = await callConsole("venues");
  if (id === null) return fetchAll(venues, period);
  const query = { locationId: id, period };
  const [fetchedFigures, [pulse]] = await Promise.all([fetchFigures(query), fetchPulses([query])]);
  const [window] = fetchedFigures.summary.current.windows;
  const listed = venues.find((each) => each.locationId === id);
  const venue = listed || { locationId: id, name: id, timeZone: window.timeZone, fellBackToUtc: window.fellBackToUtc };
  return { ...fetchedFigures, venue, venues, period, query, pulse, address: `#/figures/${encodeURIComponent(id)}` };
}

async function fetchAll(venues, period) {
  if (!venues.length) throw new Refusal(404, "location_not_found", "You have no access to the figures of any location.");
  // The query requires one location, although it is for all of them.
  const query = { locationId: venues[0].locationId, locationMode: "all", period };
  const isCompared = period === "today" && venues.length <= COMPARED_MAX;
  const [fetchedFigures, pulses] = await Promise.all([fetchFigures(query), isCompared ? fetchPulses(venues) : []]);
  const venue = { locationId: "all", name: "All locations", timeZone: commonZone(venues), isAll: true };
  return { ...fetchedFigures, venue, venues, period, query, pulse: { currencies: totalOf(pulses), activity: [] }, address: `#/${ALL}` };
}

async function fetchFigures(query) {
  const [summary, dashboard] = await Promise.all([callFigures("reports/financialSummary", query), callFigures("analytics/dashboard", query)]);
  return { summary, items: dashboard.financialItems, fetchedAt: new Date() };
}

export function showVenue(data, view) {
  if (!byId("venue")) {
    view.replaceChildren(element("div", { class: "sheet", id: "venue" }));
    watcher.disconnect();
    watcher.observe(byId("venue"));
  }
  const sheet = byId("venue");
  const redraw = () => draw(data, sheet);
  let drawnWidth = contentWidthOf(sheet);
  redrawIfResized = () => {
    if (!sheet.isConnected) return watcher.disconnect();
    if (contentWidthOf(sheet) === drawnWidth) return;
    drawnWidth = contentWidthOf(sheet);
    redraw();
  };
  redraw();
}

function contentWidthOf(sheet) {
  const { paddingLeft, paddingRight } = getComputedStyle(sheet);
  return Math.max(WIDTH_MIN, Math.floor(sheet.clientWidth - parseFloat(paddingLeft) - parseFloat(paddingRight)));
}

function draw(data, sheet) {
  const { venue, period, summary } = data;
  const window = daysOf(summary.current);
  const days = window.fromDate === window.toDate ? dateText(window.fromDate) : `${dateText(window.fromDate)} to ${dateText(window.toDate)}`;
  const open = new Set([...sheet.querySelectorAll("details[open]")].map((each) => each.id));
  const width = contentWidthOf(sheet);
  const widths = { whole: width, half: width >= 2 * HALF_MIN + GAP ? Math.floor((width - GAP) / 2) : width };
  const { currencies } = summary.current;
  replace(sheet,
    element("p", { class: "sub" }, element("a", { href: "#/figures" }, "← Figures of today")),
    element("h1", {}, venue.name),
    element("p", { class: "lede" }, `${days} · ${whereText(data)}`),
    element("div", { class: "controls" }, chooser(data.address, period), saving(data, window)),
    element("p", { class: "problem", role: "alert", id: "venue-problem" }, problem.address === location.hash ? problem.text : ""),
    currencies.length ? null : element("p", { class: "empty currency" }, EMPTY[period]),
    ...currencies.map((each) => currencyPart(each, { ...data, open, widths, isOnly: currencies.length === 1 })),
    activity(data.pulse, venue, { open, width }));
}

function whereText({ venue, venues, fetchedAt }) {
  const hours = venue.timeZone ? `hours of ${venue.timeZone}` : "hours of each location";
  const reason = venue.fellBackToUtc ? ", because this location has no valid time zone" : "";
  const now = venue.timeZone ? `, now ${clock(venue.timeZone, fetchedAt)}` : "";
  return `${venue.isAll ? `${plural(venues.length, "location")} · ` : ""}${hours}${reason}${now}`;
}

// Returns the earliest first day and the latest last day of a period over all locations. In different time zones, the
// same period can have different dates.
function daysOf({ windows }) {
  const fromDate = windows.map((each) => each.fromDate).sort()[0];
  return { fromDate, toDate: windows.map((each) => each.toDate).sort().at(-1) };
}

// Returns the number of days of a period. The previous period has the same number of days.
const dayCountOf = ({ windows: [{ fromDate, toDate }] }) => Math.round((new Date(toDate) - new Date(fromDate)) / DAY_MS) + 1;

const chooser = (address, selected) => element("nav", { class: "periods", "aria-label": "Period" },
  ...PERIODS.map(([name, text]) => element("a", { href: `${address}?period=${name}`, "aria-current": name === selected ? "page" : null }, text)));

const saving = ({ query, venue }, window) => element("div", { class: "saving" },
  element("button", { type: "button", id: "save-sales", onclick: () => attemptSaving(query, venue, window) }, "Save sales as CSV"),
  element("button", { type: "button", id: "print", onclick: () => print() }, "Print"));

async function attemptSaving(query, { locationId }, window) {
  problem = { address: location.hash, text: "" };
  try {
    await saveSales(query, locationId, window);
  } catch (error) {
    problem.text = error.message;
  }
  byId("venue-problem").textContent = problem.text;
}

function currencyPart(current, data) {
  const { currency } = current;
  const previous = data.summary.previous.currencies.find((each) => each.currency === currency);
  const pulse = data.pulse.currencies.find((each) => each.currency === currency);
  const formatAmount = (cents) => money(cents, currency);
  const warnings = notes(current.figures.coverage, formatAmount);
  const { saleCount, refundCount } = current.figures;
  const isEmpty = !saleCount && !refundCount;
  const part = { ...data, currency, current, previous, now: pulse, formatAmount, days: dayCountOf(data.summary.current) };
  return element("section", { class: "currency" },
    data.isOnly ? null : element("h2", {}, currencyName(currency)),
    isEmpty ? element("p", { class: "empty" }, EMPTY[data.period]) : totals(part),
    warnings.length ? element("ul", { class: "coverage" }, ...warnings.map((each) => element("li", {}, each))) : null,
    ...(isEmpty ? [] : [
      locations(part),
      hoursChart(part),
      element("div", { class: "pair" }, methods(part), items(part)),
    ]));
}
