// The figures of one location: totals of a period, by hour, by method of payment and by item.

import { callConsole, figures } from "./facade.js";
import { clock, currencyName, dateText, money, notes } from "./amounts.js";
import { element, replace } from "./elements.js";
import { activity, hoursChart, items, methods, totals } from "./venue_parts.js";

export const PERIODS = [["today", "Today"], ["yesterday", "Yesterday"], ["last7", "Last 7 days"], ["thisMonth", "This month"]];
const EMPTY = { today: "No sales today yet.", yesterday: "No sales yesterday.", last7: "No sales in the last 7 days.", thisMonth: "No sales this month yet." };
const DAY_MS = 86400000;
const GAP = 32;
const HALF_MIN = 384;
const watcher = new ResizeObserver(() => again());
let again = () => {};

export async function fetchVenue({ id, period }) {
  const locationId = id;
  const [list, summary, dashboard, pulse] = await Promise.all([
    callConsole("venues"), figures("reports/financialSummary", { locationId, period }),
    figures("analytics/dashboard", { locationId, period }), figures("analytics/venueFinancialPulse", { locationId }),
  ]);
  const [window] = summary.current.windows;
  const listed = list.venues.find((each) => each.locationId === id);
  const venue = listed || { locationId: id, name: id, timeZone: window.timeZone, fellBackToUtc: window.fellBackToUtc };
  return { venue, period, summary, items: dashboard.financialItems, pulse: pulse.venues[0], at: new Date() };
}

export function showVenue(data, view) {
  if (!document.getElementById("venue")) {
    view.replaceChildren(element("div", { class: "sheet", id: "venue" }));
    watcher.disconnect();
    watcher.observe(document.getElementById("venue"));
  }
  const sheet = document.getElementById("venue");
  const drawn = () => draw(data, sheet);
  let width = roomOf(sheet);
  again = () => {
    if (!sheet.isConnected) return watcher.disconnect();
    if (roomOf(sheet) === width) return;
    width = roomOf(sheet);
    drawn();
  };
  drawn();
}

function roomOf(sheet) {
  const { paddingLeft, paddingRight } = getComputedStyle(sheet);
  return Math.max(240, Math.floor(sheet.clientWidth - parseFloat(paddingLeft) - parseFloat(paddingRight)));
}

function draw(data, sheet) {
  const { venue, period, summary, at } = data;
  const [window] = summary.current.windows;
  const days = window.fromDate === window.toDate ? dateText(window.fromDate) : `${dateText(window.fromDate)} to ${dateText(window.toDate)}`;
  const open = new Set([...sheet.querySelectorAll("details[open]")].map((each) => each.id));
  const room = roomOf(sheet);
  const rooms = { whole: room, half: room >= 2 * HALF_MIN + GAP ? Math.floor((room - GAP) / 2) : room };
  const { currencies } = summary.current;
  replace(sheet,
    element("p", { class: "sub" }, element("a", { href: "#/figures" }, "← All locations")),
    element("h1", {}, venue.name),
    element("p", { class: "lede" }, `${days} · hours of ${venue.timeZone}${venue.fellBackToUtc ? ", because this location has no valid time zone" : ""}, now ${clock(venue.timeZone, at)}`),
    chooser(venue, period),
    currencies.length ? null : element("p", { class: "empty currency" }, EMPTY[period]),
    ...currencies.map((each) => currencyPart(each, { ...data, open, rooms, isOnly: currencies.length === 1 })),
    activity(data.pulse, venue, { open, room }));
}

// Returns the number of days of a period. The previous period has the same number of days.
const daysOf = ({ windows: [{ fromDate, toDate }] }) => Math.round((new Date(toDate) - new Date(fromDate)) / DAY_MS) + 1;

const chooser = ({ locationId }, chosen) => element("nav", { class: "periods", "aria-label": "Period" },
  ...PERIODS.map(([name, text]) => element("a", {
    href: `#/figures/${encodeURIComponent(locationId)}?period=${name}`, "aria-current": name === chosen ? "page" : null,
  }, text)));

function currencyPart(current, data) {
  const { currency } = current;
  const previous = data.summary.previous.currencies.find((each) => each.currency === currency);
  const pulse = data.pulse.currencies.find((each) => each.currency === currency);
  const of = (cents) => money(cents, currency);
  const warnings = notes(current.figures.coverage, of);
  const { saleCount, refundCount } = current.figures;
  const isEmpty = !saleCount && !refundCount;
  const part = { ...data, currency, current, previous, now: pulse, of, days: daysOf(data.summary.current) };
  return element("section", { class: "currency" },
    data.isOnly ? null : element("h2", {}, currencyName(currency)),
    isEmpty ? element("p", { class: "empty" }, EMPTY[data.period]) : totals(part),
    warnings.length ? element("ul", { class: "coverage" }, ...warnings.map((each) => element("li", {}, each))) : null,
    ...(isEmpty ? [] : [
      hoursChart(part),
      element("div", { class: "pair" }, methods(part), items(part)),
    ]));
}
