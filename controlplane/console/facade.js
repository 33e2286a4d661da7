// Calls the service. An API key is stored only in the session storage of this tab. A user who is signed
// in has a session cookie, which scripts cannot read.

import { problemText } from "./field_errors.js";

const KEY = "venue-control.api-key";
const FACADE = "/api/public/v1/";
const REMOTE_CONTROL = `${FACADE}remoteControl/`;
// The service sends a comment every 20 s, so a stream without any bytes for 45 s is broken.
const STREAM_IDLE_MS = 45000;
// The time after which a call fails if the service does not answer.
const CALL_MS = 20000;

export class Refusal extends Error {
  constructor(status, code, message, waitSeconds) {
    super(message);
    this.status = status;
    this.code = code;
    this.waitSeconds = waitSeconds;
  }
}

export const hasKey = () => Boolean(sessionStorage.getItem(KEY));
export const keepKey = (key) => sessionStorage.setItem(KEY, key);
export const forgetKey = () => sessionStorage.removeItem(KEY);

export async function call(procedure, body = {}) {
  return (await post(REMOTE_CONTROL + procedure, body)).json();
}

// Calls an operation for figures: analytics/… or reports/….
export async function callFigures(operation, body) {
  return (await post(FACADE + operation, body)).json();
}

// Calls an operation of support: contact, inspect, confirm or disconnect.
export async function callSupport(operation, body = {}) {
  return (await post(`${FACADE}support/${operation}`, body)).json();
}

// Calls an operation for signing in or out, or for joining.
export async function authenticate(operation, body = {}) {
  return (await post(`/api/auth/${operation}`, body)).json();
}

// Calls an operation that the contract does not have.
export async function callConsole(name, body = {}) {
  return (await post(`/console/api/${name}`, body)).json();
}

// Yields [event, data] for each event until the stream ends. `signal` aborts the stream.
export async function* readChanges(body, signal) {
  const response = await post("/console/api/changes", body, signal);
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const idle = setTimeout(() => reader.cancel().catch(() => {}), STREAM_IDLE_MS);
    const { value, done } = await reader.read().finally(() => clearTimeout(idle));
    if (done) return;
    rest += value;
    const pieces = rest.split("\n\n");
    rest = pieces.pop();
    for (const piece of pieces) {
      const [, event, data] = piece.match(/^event: (\w+)\ndata: (.*)$/s) || [];
      if (event) yield [event, JSON.parse(data)];
    }
  }
}

// Exchanges the code of a sign-in link for an API key, and keeps the key.
export async function exchangeLink(code) {
  keepKey((await (await post("/console/sign-in", { code })).json()).key);
}

export async function fetchReportPage(reportId) {
  return (await post("/console/report", { reportId })).text();
}

// Returns bytes: text would lose the byte order mark that spreadsheets need.
export async function fetchReportTable(reportId, table) {
  return (await post("/console/report-table", { reportId, table })).blob();
}

// Takes a query for figures. Returns its sales as CSV, in bytes.
export async function fetchSalesTable(query) {
  return (await post("/console/sales-table", query)).blob();
}

async function post(path, body, signal = AbortSignal.timeout(CALL_MS)) {
  const key = sessionStorage.getItem(KEY);
  let response;
  try {
    response = await fetch(path, {
      method: "POST",
      headers: { ...(key && { Authorization: `Bearer ${key}` }), "Content-Type": "application/json" },
      body: JSON.stringify(body),
      credentials: key ? "omit" : "same-origin",
      signal,
    });
  } catch {
    throw new Refusal(0, "unreachable", "The service does not answer.");
  }
  if (!response.ok) throw await refusalOf(response);
  return response;
}

async function refusalOf(response) {
  const problem = await response.json().catch(() => ({}));
  const text = problemText(problem, `The service answered ${response.status}.`);
  const wait = Number(response.headers.get("Retry-After")) || 0;
  return new Refusal(response.status, problem.code || "", text, wait);
}
