// Asks many devices for a report: those that can answer, not those that were asked already.

import { ask, call } from "./facade.js";
import { openDialog } from "./dialogs.js";
import { plural } from "./elements.js";
import { isBack, wishFor } from "./wishes.js";

const ASKED_MAX = 500;
const AT_ONCE = 4;
const TRIES = 5;
const at = (id) => document.getElementById(id);

// `rows` are devices that were chosen; null for all that `filters` find.
export function openAsking(rows, filters) {
  const dialog = at("ask");
  let isStopped = false;
  at("ask-whom").textContent = rows
    ? `${plural(rows.length, "device")} chosen.`
    : `All that the filters find${filters.location ? ` at ${filters.location}` : ""}, at most ${ASKED_MAX}.`;
  at("ask-result").textContent = "";
  at("ask-progress").hidden = true;
  at("ask-start").hidden = false;
  at("ask-kinds").disabled = at("ask-start").disabled = false;
  at("ask-close").textContent = "Cancel";
  at("ask-start").onclick = async () => {
    const kind = new FormData(dialog.querySelector("form")).get("kind");
    at("ask-kinds").disabled = at("ask-start").disabled = true;
    at("ask-close").textContent = "Stop";
    try {
      const found = rows || await all(filters, () => isStopped);
      const told = await askAll(found, kind, () => isStopped);
      if (told.away.length && at("ask-when-back").checked && !isStopped) told.wished = await wishFor(told.away, kind);
      at("ask-result").textContent = inWords(told);
    } catch (error) {
      at("ask-result").textContent = error.message;
    }
    at("ask-start").hidden = true;
    at("ask-close").textContent = "Close";
    at("ask-close").focus();
  };
  openDialog(dialog, () => { isStopped = true; });
}

async function all(filters, isStopped) {
  const rows = [];
  let cursor = null;
  do {
    const page = await ask("overview", { ...filters, size: 200, ...(cursor && { cursor }) });
    rows.push(...page.devices);
    cursor = page.nextCursor;
  } while (cursor && rows.length < ASKED_MAX && !isStopped());
  return rows.slice(0, ASKED_MAX);
}

async function askAll(rows, kind, isStopped) {
  const told = { asked: 0, away: [], left: 0, known: 0, refused: 0, stopped: 0, why: "" };
  const waiting = [...rows];
  const progress = at("ask-progress");
  progress.hidden = false;
  progress.max = rows.length;
  const worker = async () => {
    while (waiting.length) {
      const row = waiting.shift();
      if (isStopped()) told.stopped += 1;
      else if (row.state === "revoked") told.left += 1;
      else if (!isBack(row)) told.away.push(row.device.instanceId);
      else if (row.requests.some((request) => request.kind === kind)) told.known += 1;
      else await askOne(row.device.instanceId, kind, told);
      progress.value = rows.length - waiting.length;
      at("ask-result").textContent = `${rows.length - waiting.length} of ${rows.length}`;
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  return told;
}

async function askOne(instanceId, kind, told) {
  for (let attempt = 1; ; attempt += 1) {
    try {
      await call("createRequest", { instanceId, kind });
      told.asked += 1;
      return;
    } catch (error) {
      if (!error.waitSeconds || attempt === TRIES) {
        told.refused += 1;
        told.why = error.message;
        return;
      }
      await new Promise((resolve) => setTimeout(resolve, error.waitSeconds * 1000));
    }
  }
}

function inWords({ asked, away, wished, left, known, refused, stopped, why }) {
  const parts = [`${plural(asked, "device")} asked`];
  if (known) parts.push(`${known} had been asked already`);
  if (away.length && !wished) parts.push(`${away.length} left out because they are not heard`);
  if (wished) parts.push(`${wished.waiting + wished.known} will be when they are back`);
  if (left) parts.push(`${left} left out because they were revoked`);
  if (refused) parts.push(`${refused} refused (${why})`);
  if (stopped) parts.push(`${stopped} not asked because it was stopped`);
  return `${parts.join(", ")}.`;
}
