// Alerts with their rules and silences, and for owners the routes and the delivery log.

import { callConsole } from "./facade.js";
import { byId, element, exactTime, pill, replace } from "./elements.js";
import { openConfirmation, openForm, showSecret, locationsField } from "./forms.js";
import { fetchLocationNames } from "./locations.js";
import { isOwner } from "./signing_in.js";

const SEVERITY_PILLS = { info: "muted", warning: "warn", critical: "bad" };
const CONDITIONS = [
  ["offline", "Device offline"], ["broken", "Report with a fault"], ["site_outage", "Site outage"], ["finding", "Finding"],
  ["incident", "Incident"], ["version_older_than", "Version older than"], ["no_report_for", "No report for (hours)"],
];
const KINDS = [["webhook", "Webhook"], ["email", "E-mail"], ["slack", "Slack"], ["teams", "Microsoft Teams"], ["pagerduty", "PagerDuty"]];
const SEVERITIES = [["info", "info"], ["warning", "warning"], ["critical", "critical"]];
const FIRING_MAX = 200;
const RESOLVED_MAX = 20;
const YES_OR_NO = [["yes", "yes"], ["no", "no"]];

export async function fetchAlerts({ id }) {
  const canSeeRoutes = isOwner();
  const fetchList = (open, size) => callConsole("alerts", id ? { id, open } : { open, size });
  const [firing, resolved, rules, silences, routes, log, names] = await Promise.all([
    fetchList(true, FIRING_MAX), fetchList(false, RESOLVED_MAX), callConsole("alerts/rules"), callConsole("alerts/silences"),
    canSeeRoutes ? callConsole("alerts/routes") : null, canSeeRoutes ? callConsole("alerts/deliveries", { size: 20 }) : null, fetchLocationNames(),
  ]);
  return { id, firing, resolved, rules, silences, routes, log, names };
}

export function showAlerts(data, view, hooks) {
  if (!byId("alerts")) {
    view.replaceChildren(element("div", { class: "sheet", id: "alerts" },
      element("h1", {}, "Alerts"),
      element("p", { class: "problem", role: "alert", id: "account-problem" }),
      element("section", { id: "alert-rows" }), element("section", { id: "alert-silences" }),
      element("section", { id: "alert-rules" }), element("section", { id: "alert-routes" }), element("section", { id: "alert-log" })));
  }
  replace(byId("alert-rows"), ...alertRows(data, hooks));
  replace(byId("alert-silences"), ...silenceRows(data, hooks));
  replace(byId("alert-rules"), ...ruleRows(data, hooks));
  replace(byId("alert-routes"), ...(data.routes ? routeRows(data, hooks) : []));
  replace(byId("alert-log"), ...(data.log ? logRows(data.log) : []));
}

const heading = (text, ...buttons) => element("div", { class: "heading" }, element("h2", {}, text), element("div", { class: "acts" }, ...buttons));
const button = (id, text, label, act, kind = null) => element("button", { type: "button", id, class: kind, "aria-label": label, onclick: act }, text);
const list = (rows, empty) => rows.length ? element("ul", { class: "cards people" }, ...rows) : element("p", { class: "empty" }, empty);
const row = (name, lines, pills, buttons) => element("li", {},
  element("div", {}, element("span", { class: "name" }, name), " ", ...pills.flatMap((each) => [each, " "]),
    ...lines.filter(Boolean).map((line) => element("p", { class: "sub" }, line))),
  buttons.length ? element("div", { class: "acts" }, ...buttons) : null);
// `rule` is the name of a rule: a condition, or a condition and its argument, such as finding:queue-stopped.
function titleOf(rule) {
  const [condition, argument] = rule.split(/:(.*)/s);
  const title = CONDITIONS.find(([name]) => name === condition)?.[1] || condition;
  return argument ? `${title} ${argument}` : title;
}
const severityPill = (each) => pill(SEVERITY_PILLS[each.severity], each.severity);
const locationOf = (names, id) => id ? names.get(id) || id : "every location";

// Opens a form. After `act` has succeeded, the view is loaded again.
function openRefreshingForm(form, act, hooks) {
  openForm(form, async (values) => {
    const followUp = await act(values);
    hooks.refresh();
    return followUp;
  }, hooks.sessionEnded);
}

function alertRows({ id, firing, resolved, names }, hooks) {
  const show = (reply) => reply.alerts.map((each) => alertRow(each, reply.canWrite, names, hooks));
  if (id) {
    const rows = [...show(firing), ...show(resolved)];
    return [element("p", {}, element("a", { href: "#/alerts" }, "Show all alerts")), list(rows, "There is no such alert.")];
  }
  const more = firing.nextCursor ? element("p", { class: "sub" }, `Only the newest ${FIRING_MAX} are listed.`) : null;
  const ended = resolved.alerts.length ? [heading("Resolved"), list(show(resolved))] : [];
  return [heading("Firing"), list(show(firing), "No alerts are firing."), more, ...ended].filter(Boolean);
}

function alertRow(each, canWrite, names, hooks) {
  const name = `${titleOf(each.rule)}: ${each.instanceId ? each.name : locationOf(names, each.locationId)}`;
  const state = each.resolvedAt ? pill("good", "resolved") : pill("bad", "firing");
  const silencedPill = each.silenced && !each.resolvedAt ? pill("muted", "silenced") : null;
  return row(name, [
    [each.instanceId && locationOf(names, each.locationId), each.flapping && "flapping", each.detail].filter(Boolean).join(" · "),
    `Since ${exactTime(each.startedAt)}${each.resolvedAt ? `, resolved ${exactTime(each.resolvedAt)}` : ""}`,
    each.acknowledgedAt && `Acknowledged by ${each.acknowledgedBy}, ${exactTime(each.acknowledgedAt)}`,
  ], [state, severityPill(each), silencedPill].filter(Boolean), canWrite && !each.resolvedAt ? [
    each.acknowledgedAt ? null : button(`acknowledge-${each.id}`, "Acknowledge", `Acknowledge ${name}`, () => hooks.attempt(() => callConsole("alerts/acknowledge", { alertId: each.id }))),
    button(`silence-${each.id}`, "Silence", `Silence ${name}`, () => addSilence(each, names, hooks)),
  ].filter(Boolean) : []);
}

function addSilence(alert, names, hooks) {
  const text = alert ? `Alerts of ${alert.instanceId ? alert.name : locationOf(names, alert.locationId)} by the rule “${titleOf(alert.rule)}” cause no notifications.` : "Matching alerts cause no notifications. An empty field matches everything.";
  const matchers = alert ? [] : [
    { name: "locationId", label: "Location", options: [["", "every location"], ...names] },
    { name: "rule", label: "Rule", maxlength: 200, autocomplete: "off", spellcheck: "false", hint: "The name of a rule, such as offline." },
  ];
  openRefreshingForm({ title: "New silence", text, action: "Silence", fields: [...matchers,
    { name: "until", label: "Until", type: "datetime-local", required: true, hint: "In the time zone of this browser." },
    { name: "reason", label: "Reason", maxlength: 128, autocomplete: "off" },
  ] }, async ({ locationId, rule, until, reason }) => {
    await callConsole("alerts/silences/add", {
      locationId: alert ? alert.locationId : locationId || null, instanceId: alert?.instanceId || null, rule: alert?.rule || rule || null,
      since: null, until: new Date(until).toISOString(), reason,
    });
  }, hooks);
}

function silenceRows({ silences: { silences, canWrite }, names }, hooks) {
  const rows = silences.map((each) => row([locationOf(names, each.locationId), each.rule ? titleOf(each.rule) : "every rule"].join(", "), [
    each.instanceId && `Device ${each.instanceId}`, `Until ${exactTime(each.until)}, by ${each.createdBy}`, each.reason,
  ], [], canWrite ? [button(`end-silence-${each.id}`, "End", `End the silence of ${locationOf(names, each.locationId)}`, () => hooks.attempt(() => callConsole("alerts/silences/end", { silenceId: each.id })))] : []));
  return [heading("Silences", canWrite && button("add-silence", "Add a silence", "Add a silence", () => addSilence(null, names, hooks))), list(rows, "There are no silences.")];
}

function ruleRows({ rules: { rules, canWrite }, names }, hooks) {
  const rows = rules.map((each) => {
    const key = `${each.name}-${each.locationId || "all"}`;
    const title = `${CONDITIONS.find(([name]) => name === each.condition)[1]}${each.argument ? `: ${each.argument}` : ""}`;
    return row(title, [
      `${locationOf(names, each.locationId)} · ${each.forMinutes === null ? "default duration" : `for ${each.forMinutes} min`}`,
    ], [severityPill(each), each.enabled ? null : pill("muted", "disabled")].filter(Boolean), canWrite ? [
      button(`edit-rule-${key}`, "Change", `Change ${title}`, () => editRule(each, names, hooks)),
      each.isDefault ? null : button(`remove-rule-${key}`, "Remove", `Remove ${title}`, () => openConfirmation({
        title: "Remove the rule?", text: `${title} at ${locationOf(names, each.locationId)}. If it replaced a default rule, the default applies again.`, keep: "Keep", action: "Remove",
      }, () => hooks.attempt(() => callConsole("alerts/rules/remove", { name: each.name, locationId: each.locationId }))), "danger"),
    ].filter(Boolean) : []);
  });
  return [heading("Rules", canWrite && button("add-rule", "Add a rule", "Add a rule", () => editRule(null, names, hooks))), list(rows, "There are no rules.")];
}

function editRule(rule, names, hooks) {
  const keyFields = rule ? [] : [
    { name: "condition", label: "Condition", options: CONDITIONS },
    { name: "argument", label: "Argument", maxlength: 150, autocomplete: "off", spellcheck: "false", hint: "The id of a finding, the cause of an incident, a version, or hours. Leave it empty for other conditions." },
    { name: "locationId", label: "Location", options: [["", "every location"], ...names] },
  ];
  const isThreshold = rule && ["version_older_than", "no_report_for"].includes(rule.condition);
  openRefreshingForm({ title: rule ? "Change the rule" : "New rule", action: "Save", fields: [...keyFields,
    ...(isThreshold ? [{ name: "argument", label: "Argument", value: rule.argument, maxlength: 150, autocomplete: "off" }] : []),
    { name: "severity", label: "Severity", value: rule?.severity || "warning", options: SEVERITIES },
    { name: "minutes", label: "Minutes until it fires", type: "number", min: 0, max: 1440, value: rule?.forMinutes ?? "", hint: "Empty means the default of the service." },
    { name: "enabled", label: "Enabled", value: rule && !rule.enabled ? "no" : "yes", options: YES_OR_NO },
  ] }, async ({ condition, argument, locationId, severity: level, minutes, enabled }) => {
    await callConsole("alerts/rules/set", {
      condition: rule?.condition || condition, argument: argument ?? rule.argument, locationId: rule ? rule.locationId : locationId || null,
      severity: level, forMinutes: minutes === "" ? null : Number(minutes), enabled: enabled === "yes",
    });
  }, hooks);
}

function routeRows({ routes: { routes, hasMail }, names }, hooks) {
  const rows = routes.map((each) => row(each.name, [
    `${KINDS.find(([kind]) => kind === each.kind)[1]} · ${each.receiver}`,
    [each.severities.join(", ") || "every severity", each.locations.map((id) => locationOf(names, id)).join(", ") || "every location",
      each.digest ? "daily digest" : each.groupMinutes ? `grouped for ${each.groupMinutes} min` : "each alert"].join(" · "),
  ], each.enabled ? [] : [pill("muted", "disabled")], [
    each.enabled ? button(`test-route-${each.id}`, "Test", `Test ${each.name}`, () => hooks.attempt(() => callConsole("alerts/routes/test", { routeId: each.id }))) : null,
    button(`edit-route-${each.id}`, "Change", `Change ${each.name}`, () => editRoute(each, names, hasMail, hooks)),
    button(`remove-route-${each.id}`, "Remove", `Remove ${each.name}`, () => openConfirmation({
      title: "Remove the route?", text: `Alerts are no longer sent to ${each.name}.`, keep: "Keep", action: "Remove",
    }, () => hooks.attempt(() => callConsole("alerts/routes/remove", { routeId: each.id }))), "danger"),
  ].filter(Boolean)));
  return [heading("Routes", button("add-route", "Add a route", "Add a route", () => editRoute(null, names, hasMail, hooks))),
    list(rows, "There are no routes. Alerts are sent to the operator of the service, if the operator has set a webhook.")];
}

function editRoute(route, names, hasMail, hooks) {
  const kinds = KINDS.filter(([kind]) => hasMail || kind !== "email" || route?.kind === kind);
  openRefreshingForm({ title: route ? `Change ${route.name}` : "New route", action: "Save", fields: [
    { name: "name", label: "Name", required: true, maxlength: 128, value: route?.name || "", autocomplete: "off" },
    ...(route ? [] : [{ name: "kind", label: "Kind", options: kinds }]),
    { name: "target", label: "Target", required: !route, maxlength: 2048, autocomplete: "off", spellcheck: "false",
      hint: `An https address, e-mail addresses, or a routing key. For an EU account, write eu: before the routing key.${route ? " Leave the field empty to keep the present target." : ""}` },
    { name: "severities", label: "Severities", type: "choices", options: SEVERITIES, value: route?.severities || [], hint: "Nothing checked means every severity." },
    locationsField(names, route?.locations || []),
    { name: "minutes", label: "Group interval in minutes", type: "number", min: 0, max: 1440, required: true, value: route?.groupMinutes ?? 0, hint: "0 sends each alert on its own." },
    { name: "digest", label: "Daily digest (e-mail)", value: route?.digest ? "yes" : "no", options: YES_OR_NO },
    { name: "enabled", label: "Enabled", value: route && !route.enabled ? "no" : "yes", options: YES_OR_NO },
  ] }, async (values) => {
    const { route: saved, secret } = await callConsole("alerts/routes/set", {
      id: route?.id || null, name: values.name, kind: route?.kind || values.kind, target: values.target.trim() || null, severities: values.severities,
      locations: values.locations, groupMinutes: Number(values.minutes), digest: values.digest === "yes", enabled: values.enabled === "yes",
    });
    return secret ? () => showSecret({
      title: "The secret of the webhook", value: secret,
      text: `${saved.receiver} can verify with this secret that a notification comes from this service. Copy the secret now: it is not displayed again.`,
    }) : undefined;
  }, hooks);
}

function logRows({ deliveries }) {
  const rows = deliveries.map((each) => row(each.texts[0] || each.id, [
    each.texts.length > 1 && `and ${each.texts.length - 1} more`,
    `${each.route} · ${exactTime(each.updatedAt)} · attempts: ${each.attempts}${each.dueAt ? ` · next attempt ${exactTime(each.dueAt)}` : ""}`, each.error,
  ], [pill(each.status)], []));
  return [heading("Delivery log"), list(rows, "No notification was sent yet.")];
}
