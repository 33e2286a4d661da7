// Reports that are asked of devices when they are back: shown as waiting, and cancelled.

import { ask } from "./facade.js";
import { element, exact, pill, when } from "./elements.js";

const DAYS = 3;
const DAY_MS = 86400000;
const AT_ONCE = 500;
export const isBack = (row) => row.state === "online";

// In a list: what waits, where nothing is under way.
export function waiting({ wishes }) {
  const [wish] = wishes || [];
  if (!wish) return null;
  return element("span", { title: wish.requestedBy ? `asked by ${wish.requestedBy}` : null },
    pill("waiting"), " ", element("span", { class: "sub" }, `${wishes.map((each) => each.kind).join(", ")}, until ${new Date(wish.until).toLocaleDateString(undefined, { day: "numeric", month: "short" })}`));
}

export async function wishFor(instanceIds, kind, days = DAYS) {
  const told = { waiting: 0, known: 0, refused: 0 };
  const until = new Date(Date.now() + days * DAY_MS).toISOString();
  for (let first = 0; first < instanceIds.length; first += AT_ONCE) {
    const reply = await ask("wish", { kind, until, instanceIds: instanceIds.slice(first, first + AT_ONCE) });
    for (const name of Object.keys(told)) told[name] += reply[name];
  }
  return told;
}

export const cancelWish = (row, kind) =>
  ask("wish-cancel", { wishId: row.wishes.find((wish) => wish.kind === kind).id });

// Beside a device that is not heard it stands for the button that asks now.
export function wishButton(kind, row, isPrimary) {
  const wish = row.wishes.find((each) => each.kind === kind);
  return element("button", {
    id: `wish-${kind}`, class: isPrimary ? "primary" : null, type: "button",
    "aria-disabled": wish ? "true" : null,
  }, wish ? `${kind === "network" ? "Network" : "Application"} report when it is back` : `Ask for a${kind === "network" ? "" : "n"} ${kind} report when it is back`);
}

export function wishList(row, canWrite) {
  if (!row.wishes.length) return null;
  return element("ul", { class: "cards wishes" }, ...row.wishes.map((wish) => element("li", {},
    pill("waiting"),
    element("span", {}, `A report about the ${wish.kind}, when the device is heard, until `,
      element("time", { datetime: wish.until, title: exact(wish.until) }, day(wish.until)),
      wish.requestedBy ? `; asked by ${wish.requestedBy}, ` : "; asked ", when(wish.createdAt)),
    canWrite ? element("button", { id: `cancel-${wish.kind}`, class: "quiet", type: "button" }, "Cancel") : null)));
}

const day = (moment) =>
  new Date(moment).toLocaleString(undefined, { weekday: "short", day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" });
