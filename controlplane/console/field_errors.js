// Turns the field errors of a refusal into a sentence for users.

const GENERIC = "the body does not fit the contract";
const FIELDS = {
  email: "The e-mail address", password: "The password", oldPassword: "The current password", newPassword: "The new password",
  name: "The name", locations: "The list of locations", locationId: "The location", timeZone: "The time zone",
  openingHours: "The opening hours", since: "The start", until: "The end", reason: "The reason", token: "The token",
  code: "The code or link", role: "The role", search: "The search text", by: "The name", url: "The address",
  argument: "The argument", rule: "The rule", target: "The target", groupMinutes: "The group interval", forMinutes: "The number of minutes", digest: "The daily digest",
};

// Returns a sentence for each reason of each field, or the refusal's own text if it already describes the problem.
export function problemText({ detail, title, errors }, fallback) {
  const fieldErrors = Object.entries(errors || {});
  if (detail && !(detail.startsWith(GENERIC) && fieldErrors.length)) return sentence(detail);
  if (!fieldErrors.length) return sentence(title || fallback);
  return fieldErrors.flatMap(([field, reasons]) => reasons.map((reason) => sentence(`${nameOf(field)} ${plain(reason)}`))).join(" ");
}

const nameOf = (field) => FIELDS[field.split(".")[0]] || `The field ${field}`;

function plain(reason) {
  if (reason === "is required" || /^must have (at least )?1 characters$/.test(reason)) return "is missing.";
  if (/^(is|must|has|does) /.test(reason)) return reason.replace("UTF-16 code units", "characters");
  return `cannot be used: ${reason}`;
}

function sentence(text) {
  const first = text.charAt(0).toUpperCase() + text.slice(1);
  return /[.!?]$/.test(first) ? first : `${first}.`;
}
