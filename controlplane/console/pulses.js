// Fetches the pulses of locations: the net of today, and the net of yesterday until the same time.

import { callFigures } from "./facade.js";

const PARALLEL_MAX = 4;

// Returns the pulse of each location, in the same order.
export async function fetchPulses(venues) {
  const waiting = [...venues.entries()];
  const pulses = [];
  const worker = async () => {
    while (waiting.length) {
      const [index, { locationId }] = waiting.shift();
      [pulses[index]] = (await callFigures("analytics/venueFinancialPulse", { locationId })).venues;
    }
  };
  await Promise.all(Array.from({ length: PARALLEL_MAX }, worker));
  return pulses;
}

// Returns the sums of all locations by currency.
export function totalOf(pulses) {
  const sums = new Map();
  for (const each of pulses.flatMap(({ currencies }) => currencies)) {
    const sum = sums.get(each.currency) || { currency: each.currency, todayCents: 0, yesterdayCents: 0, complete: true, comparisonComplete: true };
    sums.set(each.currency, {
      currency: each.currency,
      todayCents: sum.todayCents + each.todayCents,
      yesterdayCents: sum.yesterdayCents + each.yesterdayCents,
      complete: sum.complete && each.complete,
      comparisonComplete: sum.comparisonComplete && each.comparisonComplete,
    });
  }
  return [...sums.values()].sort((one, other) => (one.currency < other.currency ? -1 : 1));
}
