// Formats money, shares, changes, dates, and the local hours of a location.

import { element, exactTime, plural } from "./elements.js";

// The number of decimals of each currency in ISO 4217, unless it is two. Browsers use the numbers of CLDR, which are
// lower for some currencies. The command line has the same table.
export const DECIMALS = {
  BIF: 0, CLP: 0, DJF: 0, GNF: 0, ISK: 0, JPY: 0, KMF: 0, KRW: 0, PYG: 0, RWF: 0, UGX: 0, UYI: 0, VND: 0, VUV: 0,
  XAF: 0, XOF: 0, XPF: 0, BHD: 3, IQD: 3, JOD: 3, KWD: 3, LYD: 3, OMR: 3, TND: 3, CLF: 4, UYW: 4,
};
const formats = new Map();

function format(currency, options) {
  const key = `${currency} ${options.notation || ""}`;
  if (!formats.has(key)) formats.set(key, createFormat(currency, options));
  return formats.get(key);
}

// An unknown currency code is shown unchanged.
function createFormat(currency, options) {
  const digits = DECIMALS[currency] ?? 2;
  const decimals = { minimumFractionDigits: digits, maximumFractionDigits: digits };
  try {
    return { digits, formatter: new Intl.NumberFormat(undefined, { style: "currency", currency, ...decimals, ...options }) };
  } catch {
    const plain = new Intl.NumberFormat(undefined, decimals);
    return { digits, formatter: { format: (value) => `${plain.format(value)} ${currency}` } };
  }
}

export function money(cents, currency, options = {}) {
  const { digits, formatter } = format(currency, options);
  return formatter.format(cents / 10 ** digits);
}

// A short form for the axes of charts.
export const shortMoney = (cents, currency) => money(cents, currency, { notation: "compact", minimumFractionDigits: 0, maximumFractionDigits: 1 });

export function currencyName(currency) {
  try {
    return `${new Intl.DisplayNames(undefined, { type: "currency" }).of(currency)} (${currency})`;
  } catch {
    return currency;
  }
}

const percentFormat = new Intl.NumberFormat(undefined, { maximumFractionDigits: 1 });
export const percent = (value) => (value === null || value === undefined ? "–" : `${percentFormat.format(value)} %`);

// Returns an arrow and a percentage, with words for screen readers. Returns null if a value is missing or the earlier
// value is 0.
export function change(now, before) {
  if (!before || now === null) return null;
  const by = ((now - before) / Math.abs(before)) * 100;
  if (Math.abs(by) < 0.05) return element("span", { class: "change-by" }, "no change");
  const [arrow, word] = by > 0 ? ["▲", "up"] : ["▼", "down"];
  const size = percent(Math.abs(by));
  return element("span", { class: "change-by" },
    element("span", { "aria-hidden": "true" }, `${arrow} ${size}`),
    element("span", { class: "visually-hidden" }, `${word} ${size}`));
}

export const hourText = (hour) => `${String(hour).padStart(2, "0")}:00`;
export const hourRange = (hour) => `${hourText(hour)}–${hourText((hour + 1) % 24)}`;

export function clock(zone, timestamp = new Date()) {
  try {
    return new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", hourCycle: "h23", timeZone: zone }).format(timestamp);
  } catch {
    return exactTime(timestamp);
  }
}

// Returns the zone that all locations share, or null.
export const commonZone = (venues) => (new Set(venues.map(({ timeZone }) => timeZone)).size === 1 ? venues[0].timeZone : null);

export const untilNow = (zone, timestamp) => `until ${zone ? clock(zone, timestamp) : "the same time"}`;

export const dateText = (date) =>
  new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeZone: "UTC" }).format(new Date(`${date}T00:00:00Z`));

// Returns a sentence for each kind of unknown data. `formatAmount` formats an amount.
export function notes(coverage, formatAmount) {
  const sentences = [];
  const add = (count, text) => { if (count) sentences.push(text); };
  const { saleUnknownTaxLineCount: lines, refundUnknownTaxCount: refunds } = coverage;
  add(lines, `${plural(lines, "sold line")} ${lines === 1 ? "has" : "have"} an unknown tax.`);
  add(refunds, `${plural(refunds, "refund")} ${refunds === 1 ? "has" : "have"} an unknown tax.`);
  const { missingSaleSnapshotCount: withoutLines, unresolvedImportedOrderCount: unresolved } = coverage;
  add(withoutLines, `${plural(withoutLines, "sale")} (${formatAmount(coverage.missingSaleSnapshotCents)}) came without lines. The figures include the amount, but no tax and no articles.`);
  add(unresolved, `${plural(unresolved, "imported order")} (${formatAmount(coverage.unresolvedImportedOrderCents)}) ${unresolved === 1 ? "is" : "are"} not resolved and not included in the figures.`);
  const { undatedRefundPaymentCount: undated, refundUnknownComponentsCount: undivided } = coverage;
  add(undated, `${plural(undated, "refund")} (${formatAmount(coverage.undatedRefundCents)}) ${undated === 1 ? "has" : "have"} no date and ${undated === 1 ? "is" : "are"} not subtracted.`);
  add(undivided, `Only the total amount of ${plural(undivided, "refund")} is known. It is counted as a refund of goods.`);
  if (!coverage.vatComplete) sentences.push("Therefore the VAT is unknown.");
  return sentences;
}
