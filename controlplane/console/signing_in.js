// Authentication: the user of the session cookie, or an API key of this tab.

import { callConsole, authenticate, forgetKey, hasKey, keepKey } from "./facade.js";
import { prepareMenu } from "./dialogs.js";
import { byId, element, plural } from "./elements.js";

let ownProfile = null;

export const isSignedIn = () => hasKey() || ownProfile !== null;

// Returns the membership in the organization of the session, or null if an API key is used.
export const membership = () =>
  ownProfile && ownProfile.organizations.find((each) => each.id === ownProfile.organizationId) || null;

export const organizationName = (id) => ownProfile?.organizations.find((each) => each.id === id)?.name || id;

// Owners with access to all locations see members and the audit log. An empty list of locations means all of them.
export const isOwner = () => membership()?.role === "owner" && !membership().locations.length;

// Returns whether a user is signed in: status 401 means no. Throws all other errors.
export async function fetchOwnProfile() {
  try {
    setOwnProfile(await callConsole("profile"));
  } catch (error) {
    if (error.status !== 401) throw error;
    ownProfile = null;
  }
  return ownProfile !== null;
}

export function setOwnProfile(profile) {
  ownProfile = profile;
  byId("account-name").textContent = profile.user.name;
}

// Shows the account menu of a user, or only the sign-out button if an API key is used.
export function showAccount() {
  byId("account").hidden = hasKey() || !ownProfile;
  byId("sign-out").hidden = !byId("account").hidden;
  for (const id of ["nav-members", "nav-audit"]) byId(id).hidden = !isOwner();
}

// Returns the message for a user whose access has ended: `keyMessage` if an API key is used, otherwise a message
// about the session.
export const accessEndedMessage = (keyMessage) => hasKey() ? keyMessage : "Your session has ended. Sign in again.";

export function showSignIn(problem) {
  const hadKey = hasKey();
  forgetKey();
  ownProfile = null;
  byId("account").open = false;
  byId("sign-in").hidden = false;
  showProviders();
  if (hadKey || !byId("join-form").hidden) showForm(hadKey ? "key" : "password");
  byId("sign-in-problem").textContent = problem;
  byId(byId("password-form").hidden ? "key" : "email").focus();
}

// If the providers cannot be read, users can still sign in with a password.
async function showProviders() {
  const { providers } = await authenticate("providers").catch(() => ({ providers: [] }));
  byId("providers").hidden = !providers.length;
  byId("providers").replaceChildren(...providers.map(({ label, path }) => element("li", {},
    element("a", { class: "button", href: path }, `Sign in with ${label}`))));
}

// `credential` is "key" or "password".
function showForm(credential) {
  byId("join-form").hidden = true;
  byId("password-form").hidden = credential === "key";
  byId("key-form").hidden = credential !== "key";
  byId("sign-in-problem").textContent = "";
}

// `onSignIn` is called after sign-in, `onSignOut` after sign-out.
export function prepareSignIn(onSignIn, onSignOut) {
  for (const [button, credential, field] of [["use-key", "key", "key"], ["use-password", "password", "email"]]) {
    byId(button).addEventListener("click", () => {
      showForm(credential);
      byId(field).focus();
    });
  }
  byId("key-form").addEventListener("submit", (event) => {
    event.preventDefault();
    keepKey(byId("key").value.trim());
    byId("key").value = "";
    onSignIn();
  });
  byId("password-form").addEventListener("submit", async (event) => {
    event.preventDefault();
    await signIn(onSignIn);
  });
  byId("sign-out").addEventListener("click", () => onSignOut(""));
  byId("end-session").addEventListener("click", () => endSession(onSignOut));
  prepareMenu(byId("account"));
  byId("account").addEventListener("click", (event) => {
    if (event.target.closest("a")) byId("account").open = false;
  });
}

async function signIn(onSignIn) {
  const button = byId("password-sign-in");
  button.disabled = true;
  byId("sign-in-problem").textContent = "";
  try {
    await authenticate("sign-in/email", { email: byId("email").value.trim(), password: byId("password").value });
    byId("password").value = "";
    await fetchOwnProfile();
  } catch (error) {
    if (error.code === "second_factor_required") return location.assign("/sign-in/code");
    byId("sign-in-problem").textContent = signInMessage(error);
    byId("password").select();
    return;
  } finally {
    button.disabled = false;
  }
  onSignIn();
}

const signInMessage = (error) => error.status === 429 && error.waitSeconds
  ? `Too many attempts. Try again in ${formatDuration(error.waitSeconds)}.`
  : error.message;

function formatDuration(seconds) {
  return seconds < 90 ? plural(seconds, "second") : plural(Math.ceil(seconds / 60), "minute");
}

async function endSession(onSignOut) {
  try {
    await authenticate("sign-out");
  } catch (error) {
    byId("live").textContent = `You are still signed in: ${error.message}`;
    byId("live").classList.add("bad");
    return;
  }
  onSignOut("");
}
