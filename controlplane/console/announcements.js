// Announces changes of requests and reports of the displayed device to screen readers.

const WORDS = {
  queued: "waits for the device", received: "was received by the device", running: "is running",
};
let last = { id: "", requests: new Map(), reports: new Map() };

// Called each time a device is shown. Announces nothing if a different device, or none, was shown before.
export function announceWork({ device, requests, reports }) {
  const now = {
    id: device.instanceId,
    requests: new Map(requests.map(({ id, kind, status }) => [id, { kind, status }])),
    reports: new Map(reports.map((report) => [report.kind, report])),
  };
  const before = last;
  last = now;
  if (before.id !== now.id) return;
  const news = [];
  for (const [id, { kind, status }] of now.requests)
    if (before.requests.get(id)?.status !== status) news.push(`The request for the ${kind} report ${WORDS[status] || status}.`);
  for (const [kind, report] of now.reports)
    if (before.reports.get(kind)?.reportId !== report.reportId) news.push(`A new ${kind} report: ${report.headline || report.outcome}`);
  if (news.length) document.getElementById("announced").textContent = news.join(" ");
}
