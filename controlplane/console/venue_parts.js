// The sections of a location's page. Each chart also has a table with its numbers.
//
// Most functions take a `part`: the figures of one currency. `current` has the figures of the period, and `previous`
// has the figures of the period before it. `days` is the number of days of the period. `now` has the net of today, and
// the net of yesterday until the same time. `formatAmount` formats an amount in this currency. `isOnly` is whether the
// page has no other currency. `widths` has the widths of charts in pixels. `open` has the ids of the tables that the
// user has opened.

import { change, hourRange, hourText, percent, shortMoney, untilNow } from "./amounts.js";
import { bars, heatMap, shares } from "./charts.js";
import { element, plural } from "./elements.js";

const HOURS = 24;
const WEEKDAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];
const TYPES = { cash: "Cash", card: "Card", wallet: "Wallet", mixed: "Several methods", other: "Other" };
const BARS_MAX = 8;
const ROWS_MAX = 20;
function previousPeriodName({ period, days }) {
  if (period === "today") return "yesterday";
  return days === 1 ? "the day before" : `${days} days before`;
}
// The heading is one level lower if the page has a heading for each currency.
const title = ({ isOnly }, text) => element(isOnly ? "h2" : "h3", {}, text);
const head = (text) => element("th", { scope: "col" }, text);

function table(id, heads, rows, open) {
  return element("details", { id, class: "numbers", open: open.has(id) },
    element("summary", { id: `${id}-summary` }, "As a table"),
    element("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": "Table" }, element("table", {},
      element("thead", {}, element("tr", {}, ...heads.map(head))),
      element("tbody", {}, ...rows.map(([first, ...cells]) => element("tr", {},
        element("th", { scope: "row" }, first), ...cells.map((cell) => element("td", {}, cell))))))));
}

// ---------------------------------------------------------------------------- totals

// If the amount and the words do not fit into one line, the words stay together on the next line.
const beside = (amount, words) => [`${amount} `, element("span", { class: "whole" }, words)];

export function totals(part) {
  const { current, previous, currency, now, period, days, formatAmount, fetchedAt, venue } = part;
  const [present, earlier] = [current.figures, previous?.figures];
  const isToday = period === "today";
  const comparison = isToday ? "yesterday, all day" : `${days === 1 ? "" : "in the "}${previousPeriodName(part)}`;
  const vat = present.vatCents === null ? "unknown" : formatAmount(present.vatCents);
  // Today has not ended. Therefore no change is shown, except for the net, which is compared with yesterday until the
  // same time. docs/figures.md defines this comparison. The command line uses the same definition.
  const tile = (id, name, text, presentValue, earlierValue, format) => element("li", { id: `${id}-${currency}` },
    element("span", { class: "what" }, name), element("strong", {}, text),
    isToday ? null : change(presentValue, earlierValue),
    element("span", { class: "sub" }, ...(earlierValue === null || earlierValue === undefined ? ["before: unknown"] : beside(format(earlierValue), comparison))));
  const count = (value) => value.toLocaleString();
  const amount = (id, name, key) => tile(id, name, formatAmount(present[key]), present[key], earlier?.[key] ?? 0, formatAmount);
  return element("ul", { class: "totals" },
    isToday && now
      ? element("li", { id: `net-${currency}` },
          element("span", { class: "what" }, "Net"), element("strong", {}, formatAmount(present.netCents)), change(now.todayCents, now.yesterdayCents),
          element("span", { class: "sub" }, ...beside(formatAmount(now.yesterdayCents), `yesterday ${untilNow(venue.timeZone, fetchedAt)}`)))
      : amount("net", "Net", "netCents"),
    amount("gross", "Gross", "grossCents"),
    amount("discount", "Discounts", "discountCents"),
    amount("refund", "Refunds", "refundCents"),
    tile("vat", "VAT in the net", vat, present.vatCents, earlier ? earlier.vatCents : 0, formatAmount),
    amount("tips", "Refunded tips", "refundTipCents"),
    tile("sales", "Sales", count(present.saleCount), present.saleCount, earlier?.saleCount ?? 0, count),
    tile("average", "Average sale", present.averageSaleCents === null ? "–" : formatAmount(present.averageSaleCents), present.averageSaleCents, earlier?.averageSaleCents, formatAmount));
}

// ---------------------------------------------------------------------------- hours

function byHour(buckets = []) {
  const totalsByHour = Array.from({ length: HOURS }, (_, hour) => ({ hour, net: 0, sales: 0, hasBucket: false }));
  for (const { localHour, netCents, saleCount } of buckets) {
    totalsByHour[localHour].net += netCents;
    totalsByHour[localHour].sales += saleCount;
    totalsByHour[localHour].hasBucket = true;
  }
  return totalsByHour;
}

export function hoursChart(part) {
  const { current, previous, currency, days, formatAmount, widths, open, venue } = part;
  const comparison = previousPeriodName(part);
  const [present, earlier] = [byHour(current.buckets), byHour(previous?.buckets)];
  const hasBuckets = present.map(({ hour, hasBucket }) => hasBucket || earlier[hour].hasBucket);
  const [first, last] = [hasBuckets.indexOf(true), hasBuckets.lastIndexOf(true)];
  if (first < 0) return null;
  const visible = present.slice(first, last + 1);
  const rows = visible.map(({ hour, net, sales }) => ({
    label: String(hour).padStart(2, "0"), value: net, previous: earlier[hour].net,
    description: `${hourRange(hour)}: ${formatAmount(net)} of ${plural(sales, "sale")}, ${comparison} ${formatAmount(earlier[hour].net)}`,
  }));
  const best = [...visible].sort((one, other) => other.net - one.net)[0];
  const summary = `Net by hour: most between ${hourRange(best.hour)}, ${formatAmount(best.net)}`;
  return element("section", {},
    title(part, "Hours"),
    element("p", { class: "sub chart-key" },
      element("span", {}, element("i", { class: "value" }), days === 1 ? "net of each hour" : "net of each hour, all days"),
      element("span", {}, element("i", { class: "before" }), comparison),
      element("span", {}, venue.timeZone ? `hours of ${venue.timeZone}` : "hours of each location")),
    bars({ title: summary, width: widths.whole, rows, axis: (value) => shortMoney(value, currency) }),
    table(`hours-${currency}`, ["Hour", "Net", `Net ${comparison}`, "Sales"],
      visible.map(({ hour, net, sales }) => [hourRange(hour), formatAmount(net), formatAmount(earlier[hour].net), sales.toLocaleString()]), open));
}

// ---------------------------------------------------------------------------- locations, methods, items

// The share of each location, on the page for all locations.
export function locations(part) {
  const { current, currency, formatAmount, widths, open, venue, venues } = part;
  const sold = current.locations.filter(({ figures: { saleCount, refundCount } }) => saleCount || refundCount);
  if (!venue.isAll || !sold.length) return null;
  const names = new Map(venues.map(({ locationId, name }) => [locationId, name]));
  const nameOf = ({ locationId }) => names.get(locationId) || locationId;
  const ranked = [...sold].sort((one, other) => other.figures.netCents - one.figures.netCents);
  const rows = ranked.map((each) => ({ label: nameOf(each), value: each.figures.netCents, caption: `${formatAmount(each.figures.netCents)} · ${percent(each.sharePercent)}` }));
  return element("section", {},
    title(part, "Locations"),
    shares({ title: `Net by location: ${rows[0].label} leads with ${rows[0].caption}`, width: widths.whole, rows: rows.slice(0, BARS_MAX) }),
    table(`locations-${currency}`, ["Location", "Net", "Share", "Sales", "Refunds"], ranked.map((each) => [
      nameOf(each), formatAmount(each.figures.netCents), percent(each.sharePercent), each.figures.saleCount.toLocaleString(), formatAmount(each.figures.refundCents),
    ]), open));
}

const typeName = (type) => TYPES[type] || type.replaceAll(/[-_]/g, " ").replace(/^./, (letter) => letter.toUpperCase());
const methodName = ({ paymentType, paymentMethodName }) =>
  paymentMethodName && paymentMethodName !== typeName(paymentType) ? `${paymentMethodName} (${typeName(paymentType).toLowerCase()})` : typeName(paymentType);

export function methods(part) {
  const { current, currency, formatAmount, widths, open } = part;
  const rows = current.methods.map((each) => ({ label: methodName(each), value: each.netCents, caption: `${formatAmount(each.netCents)} · ${percent(each.sharePercent)}` }));
  if (!rows.length) return null;
  return element("section", {},
    title(part, "Payment methods"),
    shares({ title: `Net by payment method: ${rows[0].label} leads with ${rows[0].caption}`, width: widths.half, rows: rows.slice(0, BARS_MAX) }),
    table(`methods-${currency}`, ["Method", "Net", "Share", "Sold", "Refunded"],
      current.methods.map((each) => [methodName(each), formatAmount(each.netCents), percent(each.sharePercent), formatAmount(each.saleCents), formatAmount(each.refundedCents)]), open));
}

const itemName = ({ name }) => name || "Unknown item";
const quantity = ({ quantityMilli, quantityUnit }) => `${(quantityMilli / 1000).toLocaleString()}${quantityUnit ? ` ${quantityUnit}` : ""}`;

export function items(part) {
  const { items: all, currency, formatAmount, widths, open } = part;
  const group = all.find((each) => each.currency === currency);
  if (!group?.items.length) return null;
  const more = group.items.length - ROWS_MAX + group.omittedCount;
  const rows = group.items.slice(0, BARS_MAX).map((each) => ({ label: itemName(each), value: each.netCents, caption: `${formatAmount(each.netCents)} · ${percent(each.sharePercent)}` }));
  const numbers = table(`items-${currency}`, ["Item", "Net", "Share", "Quantity"],
    group.items.slice(0, ROWS_MAX).map((each) => [itemName(each), formatAmount(each.netCents), percent(each.sharePercent), quantity(each)]), open);
  if (more > 0) numbers.append(element("p", { class: "sub" }, `${plural(more, "item")} more`));
  return element("section", {},
    title(part, "Best items"),
    shares({ title: `Net by item: ${rows[0].label} leads with ${rows[0].caption}`, width: widths.half, rows }),
    numbers);
}

// ---------------------------------------------------------------------------- the week

// Orders of the 28 days before today, in all currencies. They do not depend on the selected period.
export function activity({ activity: counts, activityComplete }, venue, { open, width }) {
  if (!counts.length) return null;
  const countOf = (weekday, hour) => counts.find((each) => each.weekday === weekday && each.hour === hour)?.orderCount || 0;
  const [first, last] = [Math.min(...counts.map(({ hour }) => hour)), Math.max(...counts.map(({ hour }) => hour))];
  const columns = Array.from({ length: last - first + 1 }, (_, index) => first + index);
  const best = [...counts].sort((one, other) => other.orderCount - one.orderCount).slice(0, 3)
    .map(({ weekday, hour, orderCount }) => `${WEEKDAYS[weekday - 1]} ${hourRange(hour)} (${plural(orderCount, "order")})`);
  return element("section", { id: "best-hours" },
    element("h2", {}, "Best hours"),
    element("p", { class: "sub" }, `Busiest in the 28 days before today: ${best.join(", ")}.${activityComplete ? "" : " There is less than 28 days of data."}`),
    heatMap({
      title: `Orders by weekday and hour: most on ${best[0]}`, width, columns: columns.map((hour) => String(hour).padStart(2, "0")),
      rows: WEEKDAYS.map((name, index) => ({
        label: name.slice(0, 3), cells: columns.map((hour) => countOf(index + 1, hour)),
        description: (column) => `${name} ${hourRange(columns[column])}: ${plural(countOf(index + 1, columns[column]), "order")}`,
      })),
    }),
    element("p", { class: "sub chart-key" },
      element("span", {}, "none", ...[0, 1, 2, 3, 4, 5].map((level) => element("i", { class: `level-${level}` })), "most"),
      element("span", {}, `hours of ${venue.timeZone}`)),
    table("activity", ["Hour", ...WEEKDAYS.map((name) => name.slice(0, 3))],
      columns.map((hour) => [hourText(hour), ...WEEKDAYS.map((_, index) => countOf(index + 1, hour).toLocaleString())]), open));
}
