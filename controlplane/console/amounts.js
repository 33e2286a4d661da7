// Formats money, shares, changes, dates, and the local hours of a location.

import { element, exact, plural } from "./elements.js";

const formats = new Map();

function format(currency, options) {
  const key = `${currency} ${options.notation || ""}`;
  if (!formats.has(key)) formats.set(key, createFormat(currency, options));
  return formats.get(key);
}

// An unknown currency code is shown unchanged, with two decimal digits.
function createFormat(currency, options) {
  try {
    const digits = new Intl.NumberFormat(undefined, { style: "currency", currency }).resolvedOptions().maximumFractionDigits;
    return { digits, of: new Intl.NumberFormat(undefined, { style: "currency", currency, ...options }) };
  } catch {
    const plain = new Intl.NumberFormat(undefined, { minimumFractionDigits: 2, maximumFractionDigits: 2 });
    return { digits: 2, of: { format: (value) => `${plain.format(value)} ${currency}` } };
  }
}

export function money(cents, currency, options = {}) {
  const { digits, of } = format(currency, options);
  return of.format(cents / 10 ** digits);
}

// A short form for the axes of charts.
export const short = (cents, currency) => money(cents, currency, { notation: "compact", minimumFractionDigits: 0, maximumFractionDigits: 1 });

export function currencyName(currency) {
  try {
    return `${new Intl.DisplayNames(undefined, { type: "currency" }).of(currency)} (${currency})`;
  } catch {
    return currency;
  }
}

const share = new Intl.NumberFormat(undefined, { maximumFractionDigits: 1 });
export const percent = (value) => (value === null || value === undefined ? "–" : `${share.format(value)} %`);

// Returns an arrow and a percentage, with words for screen readers. Returns null if there is no earlier
// value.
export function change(now, before) {
  if (!before || now === null) return null;
  const by = ((now - before) / Math.abs(before)) * 100;
  if (Math.abs(by) < 0.05) return element("span", { class: "change-by" }, "no change");
  const [arrow, word] = by > 0 ? ["▲", "up"] : ["▼", "down"];
  const size = percent(Math.abs(by));
  return element("span", { class: "change-by" },
    element("span", { "aria-hidden": "true" }, `${arrow} ${size}`),
    element("span", { class: "unseen" }, `${word} ${size}`));
}

export const hourText = (hour) => `${String(hour).padStart(2, "0")}:00`;
export const hours = (hour) => `${hourText(hour)}–${hourText((hour + 1) % 24)}`;

export function clock(zone, timestamp = new Date()) {
  try {
    return new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", hourCycle: "h23", timeZone: zone }).format(timestamp);
  } catch {
    return exact(timestamp);
  }
}

// Returns the zone that all locations share, or null.
export const commonZone = (venues) => (new Set(venues.map(({ timeZone }) => timeZone)).size === 1 ? venues[0].timeZone : null);

export const untilNow = (zone, timestamp) => `until ${zone ? clock(zone, timestamp) : "the same time"}`;

export const dateText = (date) =>
  new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeZone: "UTC" }).format(new Date(`${date}T00:00:00Z`));

// Returns a sentence for each kind of unknown data. `of` formats an amount.
export function notes(coverage, of) {
  const sentences = [];
  const add = (count, text) => { if (count) sentences.push(text); };
  const { saleUnknownTaxLineCount: lines, refundUnknownTaxCount: refunds } = coverage;
  add(lines, `${plural(lines, "sold line")} ${lines === 1 ? "has" : "have"} no known tax.`);
  add(refunds, `${plural(refunds, "refund")} ${refunds === 1 ? "has" : "have"} no known tax.`);
  const { missingSaleSnapshotCount: bare, unresolvedImportedOrderCount: open } = coverage;
  add(bare, `${plural(bare, "sale")} (${of(coverage.missingSaleSnapshotCents)}) came without lines. The figures include the amount, but no tax and no articles.`);
  add(open, `${plural(open, "imported order")} (${of(coverage.unresolvedImportedOrderCents)}) ${open === 1 ? "is" : "are"} not resolved and not included in the figures.`);
  const { undatedRefundPaymentCount: undated, refundUnknownComponentsCount: blind } = coverage;
  add(undated, `${plural(undated, "refund")} (${of(coverage.undatedRefundCents)}) ${undated === 1 ? "has" : "have"} no date and ${undated === 1 ? "is" : "are"} not subtracted.`);
  add(blind, `Only the total amount of ${plural(blind, "refund")} is known. It is counted as a refund of goods.`);
  if (!coverage.vatComplete) sentences.push("Therefore the VAT is not known.");
  return sentences;
}
