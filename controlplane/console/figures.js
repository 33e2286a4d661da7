// The list of locations with today's sales and their total. The navigation has a link to this list if the
// caller can see a location.

import { callConsole } from "./facade.js";
import { change, clock, commonZone, currencyName, money, untilNow } from "./amounts.js";
import { byId, element, plural, replace } from "./elements.js";
import { isSignedIn } from "./signing_in.js";
import { fetchPulses, totalOf } from "./pulses.js";
import { ALL, PERIODS, fetchVenue, showVenue } from "./venue.js";

const RELOAD_MS = 45000;
const PAGE_SIZE = 40;
let canSeeLocation = null;  // null if not known yet
let limit = PAGE_SIZE;

export const FIGURES = {
  figures: { load: fetchList, show: showList, title: () => "Figures", rows: () => null, reloadMs: RELOAD_MS, pausesWhenHidden: true },
  venue: { load: fetchVenue, show: showVenue, title: ({ venue }) => `${venue.name}, figures`, rows: () => null, reloadMs: RELOAD_MS, pausesWhenHidden: true },
};

export function figuresRoute(path, query) {
  const [, id] = path.match(/^figures\/(.+)$/) || [];
  if (!id && path !== ALL) return { view: "figures" };
  const requested = new URLSearchParams(query).get("period");
  return { view: "venue", id: id ? decode(id) : null, period: PERIODS.some(([name]) => name === requested) ? requested : "today" };
}

function decode(id) {
  try {
    return decodeURIComponent(id);
  } catch {
    return id;
  }
}

// Shows the navigation link `anchor` if the caller can see a location. If `anchor` is null, hides the link
// and resets the state for the next caller.
export async function updateFiguresLink(anchor) {
  if (!anchor) {
    canSeeLocation = null;
    limit = PAGE_SIZE;
    byId("nav-figures").hidden = true;
    return;
  }
  if (canSeeLocation !== null) return;
  canSeeLocation = false;
  try {
    canSeeLocation = (await callConsole("venues")).venues.length > 0;
    anchor.hidden = !(canSeeLocation && isSignedIn());
  } catch {
    canSeeLocation = null;  // the next refresh tries again
  }
}

async function fetchList() {
  const { venues, omittedCount } = await callConsole("venues");
  const listed = venues.slice(0, limit);
  const pulses = await fetchPulses(listed);
  const rows = listed.map((venue, index) => ({ venue, pulse: pulses[index] }));
  return { rows, fetchedAt: new Date(), remaining: venues.length - rows.length, omittedCount };
}

function showList({ rows, fetchedAt, remaining, omittedCount }, view) {
  if (!byId("figures")) view.replaceChildren(element("div", { class: "sheet", id: "figures" }));
  replace(byId("figures"),
    element("h1", {}, "Figures of today"),
    element("p", { class: "lede" }, "Net sales until now, compared with yesterday until the same time."),
    rows.length > 1 ? element("ul", { class: "cards venues", id: "total" }, total(rows, fetchedAt, remaining + omittedCount)) : null,
    rows.length
      ? element("ul", { class: "cards venues" }, ...rows.map((row) => card(row, fetchedAt)))
      : element("p", { class: "empty" }, "You have no access to the figures of any location."),
    remaining ? element("p", { class: "more" }, element("button", { type: "button", id: "more-venues", onclick: more }, `Show more (${remaining})`)) : null,
    omittedCount ? element("p", { class: "sub" }, `Not listed: ${plural(omittedCount, "more location")}.`) : null,
    element("p", { class: "zone" }, "Days and times are in the time zone of each location."));
}

function more() {
  limit += PAGE_SIZE;
  // main.js refreshes the view after this event.
  dispatchEvent(new HashChangeEvent("hashchange", { oldURL: location.href, newURL: location.href }));
}

function total(rows, fetchedAt, remaining) {
  const currencies = totalOf(rows.map(({ pulse }) => pulse));
  const sum = `The sum of ${remaining ? `the ${plural(rows.length, "listed location")}` : plural(rows.length, "location")}`;
  return entry("All locations", `#/${ALL}`, sum, currencies, untilNow(commonZone(rows.map(({ venue }) => venue)), fetchedAt));
}

function card({ venue, pulse }, fetchedAt) {
  const { locationId, name, timeZone } = venue;
  const zone = venue.fellBackToUtc ? "UTC because no valid time zone is set" : timeZone;
  return entry(name, `#/figures/${encodeURIComponent(locationId)}`, `${clock(timeZone, fetchedAt)}, ${zone}`, pulse.currencies, untilNow(timeZone, fetchedAt));
}

const entry = (name, href, sub, currencies, until) => element("li", {},
  element("div", {},
    element("a", { class: "name", href }, name),
    element("p", { class: "sub" }, sub)),
  currencies.length
    ? element("ul", { class: "nets" }, ...withMovements(currencies).map((each) => net(each, until)))
    : element("p", { class: "empty" }, "No sales today or yesterday."));

// Omits each currency whose figures are complete and whose net is 0 on both days. If this applies to all currencies,
// returns the first one.
function withMovements(currencies) {
  const moving = currencies.filter((each) => each.todayCents || each.yesterdayCents || !each.complete || !each.comparisonComplete);
  return moving.length ? moving : currencies.slice(0, 1);
}

function net({ currency, todayCents, yesterdayCents, complete, comparisonComplete }, until) {
  let warning = "";
  if (!complete) warning = "The figures of today are incomplete.";
  else if (!comparisonComplete) warning = "The figures of yesterday are incomplete.";
  return element("li", { title: currencyName(currency) },
    element("strong", {}, money(todayCents, currency)), " ", change(todayCents, yesterdayCents),
    element("span", { class: "sub" }, `${money(yesterdayCents, currency)} yesterday ${until}`),
    warning ? element("span", { class: "sub" }, warning) : null);
}
