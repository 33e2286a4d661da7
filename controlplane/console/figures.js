// The list of locations with today's sales. The navigation has a link to this list if the caller can see a
// location.

import { callConsole, figures } from "./facade.js";
import { change, clock, currencyName, money } from "./amounts.js";
import { element, plural, replace } from "./elements.js";
import { isSignedIn } from "./signing_in.js";
import { PERIODS, fetchVenue, showVenue } from "./venue.js";

const RELOAD_MS = 45000;
const PAGE_SIZE = 40;
const AT_ONCE = 4;
let canSeeLocation = null;  // null if not known yet
let limit = PAGE_SIZE;

export const FIGURES = {
  figures: { load: fetchList, show: showList, title: () => "Figures", rows: () => null, reloadMs: RELOAD_MS, pausesWhenHidden: true },
  venue: { load: fetchVenue, show: showVenue, title: ({ venue }) => `${venue.name}, figures`, rows: () => null, reloadMs: RELOAD_MS, pausesWhenHidden: true },
};

export function figuresRoute(path, query) {
  const [, id] = path.match(/^figures\/(.+)$/) || [];
  if (!id) return { view: "figures" };
  const wanted = new URLSearchParams(query).get("period");
  return { view: "venue", id: plain(id), period: PERIODS.some(([name]) => name === wanted) ? wanted : "today" };
}

function plain(id) {
  try {
    return decodeURIComponent(id);
  } catch {
    return id;
  }
}

// Shows the navigation link `anchor` if the caller can see a location. If `anchor` is null, hides the link
// and resets the state for the next caller.
export async function showLink(anchor) {
  if (!anchor) {
    canSeeLocation = null;
    limit = PAGE_SIZE;
    document.getElementById("nav-figures").hidden = true;
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
  const waiting = venues.slice(0, limit).map((venue) => ({ venue, pulse: null }));
  const rows = [...waiting];
  const worker = async () => {
    while (waiting.length) {
      const row = waiting.shift();
      const { locationId } = row.venue;
      [row.pulse] = (await figures("analytics/venueFinancialPulse", { locationId })).venues;
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  return { rows, at: new Date(), left: venues.length - rows.length, omittedCount };
}

function showList({ rows, at, left, omittedCount }, view) {
  if (!document.getElementById("figures")) view.replaceChildren(element("div", { class: "sheet", id: "figures" }));
  replace(document.getElementById("figures"),
    element("h1", {}, "Figures of today"),
    element("p", { class: "lede" }, "Net sales until now, compared with yesterday until the same time."),
    rows.length
      ? element("ul", { class: "cards venues" }, ...rows.map((row) => card(row, at)))
      : element("p", { class: "empty" }, "You have no access to the figures of a location."),
    left ? element("p", { class: "more" }, element("button", { type: "button", id: "more-venues", onclick: more }, `Show more (${left})`)) : null,
    omittedCount ? element("p", { class: "sub" }, `Not listed: ${plural(omittedCount, "more location")}.`) : null,
    element("p", { class: "zone" }, "Days and times are in the time zone of each location."));
}

function more() {
  limit += PAGE_SIZE;
  dispatchEvent(new HashChangeEvent("hashchange", { oldURL: location.href, newURL: location.href }));
}

function card({ venue, pulse }, at) {
  const now = clock(venue.timeZone, at);
  return element("li", {},
    element("div", {},
      element("a", { class: "name", href: `#/figures/${encodeURIComponent(venue.locationId)}` }, venue.name),
      element("p", { class: "sub" }, `${now}, ${venue.fellBackToUtc ? "UTC because no valid time zone is set" : venue.timeZone}`)),
    pulse.currencies.length
      ? element("ul", { class: "nets" }, ...withMovements(pulse.currencies).map((each) => net(each, now)))
      : element("p", { class: "empty" }, "No sales today or yesterday."));
}

// Omits each currency whose figures are complete and whose net is 0 on both days. If no currency remains, returns
// only the first one.
function withMovements(currencies) {
  const some = currencies.filter((each) => each.todayCents || each.yesterdayCents || !each.complete || !each.comparisonComplete);
  return some.length ? some : currencies.slice(0, 1);
}

function net({ currency, todayCents, yesterdayCents, complete, comparisonComplete }, now) {
  const part = !complete ? "The figures of today are incomplete." : comparisonComplete ? "" : "The figures of yesterday are incomplete.";
  return element("li", { title: currencyName(currency) },
    element("strong", {}, money(todayCents, currency)), " ", change(todayCents, yesterdayCents),
    element("span", { class: "sub" }, `${money(yesterdayCents, currency)} yesterday until ${now}`),
    part ? element("span", { class: "sub" }, part) : null);
}
