// Fetches the pulses of locations: the net sales of today, and those of yesterday until the same time.

import { callFigures } from "./facade.js";

const PARALLEL_MAX = 4;

// Returns the pulse of each location, in the same order.
export async function fetchPulses(locations) {
  const waiting = [...locations.entries()];
  const pulses = [];
  const worker = async () => {
    while (waiting.length) {
      const [index, { locationId }] = waiting.shift();
      const reply = await callFigures("analytics/venueFinancialPulse", { locationId });
      pulses[index] = reply.venues[0];
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
