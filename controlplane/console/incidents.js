// Interruptions that several devices of a location share, as sentences.

import { dot, element, plural, timeAgo } from "./elements.js";

const NAMES_MAX = 6;
const CLOCK_FORMAT = { hour: "2-digit", minute: "2-digit" };

// Selects the shared incidents of the last 24 hours, newest first. `size` limits the number of incidents of single
// devices. The service joins several of these incidents to one shared incident.
export const RECENT = { days: 1, shared: true, size: 300 };

export function incidentList(incidents, max) {
  const more = incidents.length - max;
  return [
    element("ul", { class: "cards incidents" }, ...incidents.slice(0, max).map(entry)),
    more > 0 ? element("p", { class: "more" }, `And ${more.toLocaleString()} more: `, element("code", {}, "venue-control incidents")) : null,
  ];
}

function entry(each) {
  const { locationId, locationName, beganAt, endedAt, deviceCount, observerCount, loss, suspect } = each;
  return element("li", {},
    element("p", { class: "line" }, dot(endedAt ? "warn" : "bad"),
      element("span", {}, `${deviceCount} of ${plural(observerCount, "device")} at `,
        element("a", { href: `#/devices?location=${encodeURIComponent(locationId)}` }, locationName || locationId),
        ` ${loss} at ${time(beganAt)}: ${suspect}.`,
        element("span", { class: "sub" }, timeAgo(beganAt), endedAt ? `, for ${formatDuration(beganAt, endedAt)}: ` : ", not over yet: ", ...devices(each.incidents)),
        corrections(each.incidents))));
}

// The time in the time zone of the browser, with the date if it is not today.
function time(timestamp) {
  const at = new Date(timestamp);
  const isToday = at.toDateString() === new Date().toDateString();
  return at.toLocaleString(undefined, isToday ? CLOCK_FORMAT : { day: "numeric", month: "short", ...CLOCK_FORMAT });
}

function formatDuration(from, to) {
  const seconds = Math.round((new Date(to) - new Date(from)) / 1000);
  if (seconds < 120) return `${seconds} s`;
  return seconds < 5400 ? `${Math.round(seconds / 60)} min` : `${Math.round(seconds / 3600)} h`;
}

function devices(incidents) {
  const links = onePerDevice(incidents).map(({ instanceId, name }) => element("a", { href: `#/device/${instanceId}` }, name));
  const parts = links.slice(0, NAMES_MAX).flatMap((link, index) => index ? [", ", link] : [link]);
  return links.length > NAMES_MAX ? [...parts, ` and ${links.length - NAMES_MAX} more`] : parts;
}

function corrections(incidents) {
  const corrected = onePerDevice(incidents.filter(({ clockCorrectionSeconds }) => clockCorrectionSeconds));
  if (!corrected.length) return null;
  const parts = corrected.map(({ name, clockCorrectionSeconds: seconds }) =>
    `${name} by ${formatDuration(0, Math.abs(seconds) * 1000)} (${seconds < 0 ? "fast clock" : "slow clock, or late report"})`);
  return element("span", { class: "sub" }, `Times were corrected with the clock of the service: ${parts.join(", ")}.`);
}

const onePerDevice = (incidents) => [...new Map(incidents.map((each) => [each.instanceId, each])).values()];
