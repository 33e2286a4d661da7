// The second factor of the signed-in user, on the profile page.

import { callConsole } from "./facade.js";
import { element, pill, plural } from "./elements.js";
import { openForm, showSecret } from "./forms.js";

const CODE = { name: "code", label: "Code", required: true, maxlength: 64, autocomplete: "one-time-code", inputmode: "text", spellcheck: "false" };

export const fetchSecondFactor = () => callConsole("profile/second-factor");

export function showSecondFactor(factor, hooks) {
  const button = (id, text, onclick, kind = null) => element("button", { type: "button", id, onclick, class: kind }, text);
  if (!factor.isSetUp) return element("div", {},
    element("p", { class: "sub" }, "With a second factor, your password alone does not sign you in."),
    element("div", { class: "actions" }, button("set-up-factor", "Set up", () => hooks.attempt(() => setUp(hooks)))));
  return element("div", {},
    element("p", {}, pill("good", "on"), ` ${plural(factor.recoveryCodesLeft, "recovery code")} left`),
    factor.isRequired ? element("p", { class: "sub" }, "Your organization requires a second factor.") : null,
    element("div", { class: "actions" },
      button("new-codes", "New recovery codes", () => newCodes(hooks)),
      factor.isRequired ? null : button("remove-factor", "Remove", () => removeFactor(hooks), "danger")));
}

async function setUp(hooks) {
  const { secret, uri, qrCode } = await callConsole("profile/second-factor/begin");
  openForm({
    title: "Set up a second factor", action: "Confirm",
    text: "Scan the QR code with an authenticator app, or enter the key in the app. Then enter the code that the app shows.",
    fields: [CODE],
  }, async ({ code }) => {
    const { recoveryCodes } = await callConsole("profile/second-factor/confirm", { code });
    hooks.refresh();
    return () => showCodes(recoveryCodes);
  }, hooks.sessionEnded);
  const field = document.querySelector("#form .form-field");
  field.before(
    element("img", { src: qrCode, alt: "QR code of the key below", class: "qr", width: 200, height: 200 }),
    element("p", {}, "Key: ", element("code", { id: "factor-key" }, secret)),
    element("p", {}, element("a", { href: uri }, "Open in an app on this device")));
}

const showCodes = (codes) => showSecret({
  title: "Keep your recovery codes",
  text: "If you lose your authenticator app, each of these codes signs you in once. They are not shown again.",
  value: codes.join("\n"),
});

function newCodes(hooks) {
  openForm({ title: "New recovery codes", action: "Replace", text: "The old recovery codes become invalid.", fields: [CODE] }, async ({ code }) => {
    const { recoveryCodes } = await callConsole("profile/second-factor/recovery-codes", { code });
    hooks.refresh();
    return () => showCodes(recoveryCodes);
  }, hooks.sessionEnded);
}

function removeFactor(hooks) {
  openForm({ title: "Remove the second factor", action: "Remove", text: "Afterwards your password alone signs you in.", fields: [CODE] }, async ({ code }) => {
    await callConsole("profile/second-factor/remove", { code });
    hooks.refresh();
  }, hooks.sessionEnded);
}
