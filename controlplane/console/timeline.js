// The timeline of a device: a column for each of thirty days, the hours of the day that the pointer selects,
// and a table.

import { shape } from "./charts.js";
import { element, plural } from "./elements.js";

// The distance between two columns, and the width and the height of a column.
const STEP = 12;
const WIDTH = 10;
const HEIGHT = 36;
const HOUR_S = 3600;
let selectedDate = null;

export function timelineSection(timeline, redraw) {
  const { days, zone } = timeline;
  const day = days.find((each) => each.date === selectedDate) || days.at(-1);
  return element("section", { class: "timeline" },
    element("h2", {}, "Thirty days"),
    drawing(days, days.map((each) => each.date), describeDays(days), (index) => {
      if (selectedDate === days[index].date) return;
      selectedDate = days[index].date;
      redraw();
    }, (each) => marks(each)),
    axis(days[0].date, days.at(-1).date),
    element("p", { class: "sub" }, `Hours of ${day.date}: ${describe(day)}`),
    drawing(day.hours, day.hours.map((_, hour) => `hour ${hour + 1}`), `${day.date} by hours: ${describe(day)}`, null, () => []),
    axis("0:00", "12:00", "24:00"),
    element("p", { class: "sub legend" }, legendEntry("online", "online"), legendEntry("offline", "offline"), legendEntry("closed", "closed or maintenance"),
      legendEntry("unknown", "unknown"), legendEntry("request", "requests"), legendEntry("report", "reports"), ` · time zone ${zone}`),
    element("details", {}, element("summary", {}, "As a table"), table(days)));
}

// Draws a column for each cell: for each day, or for each hour of a day. `onPoint` is called with the index of the day
// under the pointer, and is null for hours. `marksOf` returns the marks below a column.
function drawing(cells, names, label, onPoint, marksOf) {
  const width = cells.length * STEP;
  const svg = shape("svg", { viewBox: `0 0 ${width} ${HEIGHT + 8}`, role: "img", "aria-label": label, class: onPoint ? "days" : "hours", preserveAspectRatio: "none" },
    ...(onPoint ? [hatch()] : []));
  cells.forEach((cell, index) => {
    const lengthS = onPoint ? cell.hours.length * HOUR_S : HOUR_S;
    svg.append(shape("g", { transform: `translate(${index * STEP + 1} 0)`, "data-index": index },
      shape("title", {}, `${names[index]}: ${describe(cell)}`),
      shape("rect", { class: "unknown", width: WIDTH, height: HEIGHT }), ...stack(cell, lengthS), ...marksOf(cell)));
  });
  const box = element("div", { class: "drawing" }, svg);
  if (onPoint) box.addEventListener("pointerover", (event) => {
    const index = event.target.closest("g")?.dataset.index;
    if (index !== undefined) onPoint(Number(index));
  });
  return box;
}

const axis = (...names) => element("p", { class: "sub axis", "aria-hidden": "true" }, ...names.map((name) => element("span", {}, name)));

// Stacks the online time at the bottom, the closed time above it, and the offline time on top.
function stack(cell, lengthS) {
  const parts = [["online", cell.onlineS], ["closed", cell.closedS], ["offline", cell.offlineS]];
  let top = HEIGHT;
  return parts.filter(([, seconds]) => seconds).map(([name, seconds]) => {
    // An offline time has a minimum height, so that a short one is visible.
    const height = Math.min(top, Math.max(name === "offline" ? 2.5 : 0, (seconds / lengthS) * HEIGHT));
    top -= height;
    return shape("rect", { class: name, y: top, width: WIDTH, height, ...(name === "closed" && { fill: "url(#hatch)" }) });
  });
}

const marks = ({ requests, reports }) => [
  ...(requests ? [shape("rect", { class: "request", y: HEIGHT + 2, width: WIDTH / 2 - 0.5, height: 5 })] : []),
  ...(reports ? [shape("rect", { class: "report", x: WIDTH / 2 + 0.5, y: HEIGHT + 2, width: WIDTH / 2 - 0.5, height: 5 })] : []),
];

const hatch = () => shape("defs", {}, shape("pattern", { id: "hatch", width: 4, height: 4, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" },
  shape("rect", { class: "hatch", width: 1.6, height: 4 })));

const legendEntry = (name, text) => element("span", {}, element("i", { class: name }), text);

function describeDays(days) {
  const total = (name) => days.reduce((sum, day) => sum + day[name], 0);
  const bad = days.filter((day) => day.offlineS).length;
  return `Thirty days: online ${formatDuration(total("onlineS"))}, offline ${formatDuration(total("offlineS"))} on ${plural(bad, "day")}, closed ${formatDuration(total("closedS"))}`;
}

function describe(cell) {
  const parts = [["online", cell.onlineS], ["offline", cell.offlineS], ["closed", cell.closedS]]
    .filter(([, seconds]) => seconds).map(([name, seconds]) => `${name} ${formatDuration(seconds)}`);
  if (cell.requests) parts.push(plural(cell.requests, "request"));
  if (cell.reports) parts.push(plural(cell.reports, "report"));
  return parts.join(", ") || "unknown";
}

function formatDuration(seconds) {
  const minutes = Math.round(seconds / 60);
  if (!seconds) return "0 min";
  if (minutes < 60) return `${Math.max(1, minutes)} min`;
  return minutes % 60 ? `${Math.floor(minutes / 60)} h ${minutes % 60} min` : `${minutes / 60} h`;
}

const table = (days) => element("table", {},
  element("thead", {}, element("tr", {}, ...["Day", "Online", "Offline", "Closed", "Requests", "Reports"].map((head) => element("th", { scope: "col" }, head)))),
  element("tbody", {}, ...days.toReversed().map((day) => element("tr", {},
    element("th", { scope: "row" }, day.date),
    ...[formatDuration(day.onlineS), formatDuration(day.offlineS), formatDuration(day.closedS), String(day.requests), String(day.reports)].map((text) => element("td", {}, text))))));
