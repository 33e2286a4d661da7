// Downloads: the list of devices and the findings as CSV or JSON, sales as CSV, and any other file.

import { callConsole, fetchSalesTable } from "./facade.js";
import { locationOf, nameOf, reportedAt } from "./device_names.js";

const ROWS_MAX = 10000;
const COLUMNS = {
  name: ({ device }) => nameOf(device),
  location: ({ device }) => locationOf(device),
  platform: ({ device }) => device.platform,
  version: ({ device }) => device.appVersion || "",
  state: ({ state }) => state,
  health: ({ health }) => health,
  lastSeen: ({ device }) => device.lastSeenAt,
  busySince: ({ requests }) => requests.find((each) => each.startedAt)?.startedAt || "",
  reported: (row) => reportedAt(row) || "",
  network: ({ reports }) => reports.find((each) => each.kind === "network")?.headline || "",
  application: ({ reports }) => reports.find((each) => each.kind === "application")?.headline || "",
  instanceId: ({ device }) => device.instanceId,
};

export async function saveList(kind, filters) {
  const rows = [];
  let cursor = null;
  do {
    const page = await callConsole("overview", { ...filters, size: 200, ...(cursor && { cursor }) });
    rows.push(...page.devices);
    cursor = page.nextCursor;
  } while (cursor && rows.length < ROWS_MAX);
  if (kind === "json") save(JSON.stringify(rows, null, 2), "application/json", `devices-${today()}.json`);
  else save(`\ufeff${csv(rows)}`, "text/csv", `devices-${today()}.csv`);
}

const FINDING_COLUMNS = {
  rule: ({ rule }) => rule, severity: ({ severity }) => severity, title: ({ title }) => title,
  devices: ({ deviceCount }) => deviceCount, unknown: ({ unknownCount }) => unknownCount, new: ({ newCount }) => newCount,
  devices30DaysAgo: ({ trend }) => trend?.[0] ?? "", fix: ({ fix }) => fix,
};
const FINDING_DEVICE_COLUMNS = {
  rule: ({ entry }) => entry.rule, severity: ({ entry }) => entry.severity,
  location: ({ entry }) => entry.locationName || entry.locationId, device: ({ name }) => name,
  platform: ({ platform }) => platform, version: ({ appVersion }) => appVersion || "", health: ({ health }) => health,
  since: ({ since }) => since, lastSeen: ({ lastSeen }) => lastSeen, sentence: ({ sentence }) => sentence, instanceId: ({ instanceId }) => instanceId,
};

// Saves how many devices have each finding. If the filters select one finding or only new findings, saves their
// devices instead.
export async function saveFindings(kind, filters) {
  const isList = Boolean(filters.rule || filters.isNew);
  const rows = isList ? await allEntries(filters) : (await callConsole("findings", filters)).findings;
  const name = fileName(["findings", ...(filters.rule ? [filters.rule] : []), today()]);
  if (kind === "json") return save(JSON.stringify(rows, null, 2), "application/json", `${name}.json`);
  const lines = isList ? rows.flatMap((entry) => entry.devices.map((each) => ({ ...each, entry }))) : rows;
  return save(`\ufeff${csv(lines, isList ? FINDING_DEVICE_COLUMNS : FINDING_COLUMNS)}`, "text/csv", `${name}.csv`);
}

async function allEntries(filters) {
  const rows = [];
  let cursor = null;
  do {
    const page = await callConsole("findings/devices", { ...filters, size: 100, devices: 500, ...(cursor && { cursor }) });
    rows.push(...page.entries);
    cursor = page.nextCursor;
  } while (cursor && rows.length < ROWS_MAX);
  return rows;
}

// Formats rows as CSV (RFC 4180). A leading apostrophe prevents a spreadsheet from evaluating a text as a
// formula.
export function csv(rows, columns = COLUMNS) {
  const cell = (value) => `"${String(value).replace(/^(?=[=+\-@\t\r])/, "'").replaceAll('"', '""')}"`;
  const lines = [Object.keys(columns), ...rows.map((row) => Object.values(columns).map((valueOf) => valueOf(row)))];
  return lines.map((line) => `${line.map(cell).join(",")}\r\n`).join("");
}

export function save(content, type, name) {
  const url = URL.createObjectURL(new Blob([content], { type }));
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10000);  // the download has begun by then
}

export async function saveSales(query, locationId, { fromDate, toDate }) {
  const days = fromDate === toDate ? [fromDate] : [fromDate, toDate];
  save(await fetchSalesTable(query), "text/csv", `${fileName(["sales", locationId, ...days])}.csv`);
}

export const fileName = (words) => words.join("-").replace(/[^\w.-]+/g, "_").slice(0, 120);

const today = () => new Date().toISOString().slice(0, 10);
