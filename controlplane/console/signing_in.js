// Authentication: the user of the session cookie, or an API key of this tab.

import { callConsole, authenticate, forgetKey, hasKey, keepKey } from "./facade.js";
import { asMenu } from "./dialogs.js";
import { element, plural } from "./elements.js";

const at = (id) => document.getElementById(id);
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
  at("account-name").textContent = profile.user.name;
}

// Shows the account menu of a user, or only the sign-out button if an API key is used.
export function showAccount() {
  at("account").hidden = hasKey() || !ownProfile;
  at("sign-out").hidden = !at("account").hidden;
  for (const id of ["nav-members", "nav-audit"]) at(id).hidden = !isOwner();
}

// Returns the message for a user whose access has ended: `ofKey` if an API key is used, otherwise a message
// about the session.
export const accessEndedMessage = (ofKey) => hasKey() ? ofKey : "Your session has ended. Sign in again.";

export function showSignIn(problem) {
  const wasKey = hasKey();
  forgetKey();
  ownProfile = null;
  at("account").open = false;
  at("sign-in").hidden = false;
  showProviders();
  if (wasKey || !at("join-form").hidden) choose(wasKey ? "key" : "person");
  at("sign-in-problem").textContent = problem;
  at(at("person-form").hidden ? "key" : "email").focus();
}

// If the providers cannot be read, users can still sign in with a password.
async function showProviders() {
  const { providers } = await authenticate("providers").catch(() => ({ providers: [] }));
  at("providers").hidden = !providers.length;
  at("providers").replaceChildren(...providers.map(({ label, path }) => element("li", {},
    element("a", { class: "button", href: path }, `Sign in with ${label}`))));
}

function choose(way) {
  at("join-form").hidden = true;
  at("person-form").hidden = way === "key";
  at("sign-in-form").hidden = way !== "key";
  at("sign-in-problem").textContent = "";
}

// `onSignIn` is called after sign-in, `onSignOut` after sign-out.
export function prepareSignIn(onSignIn, onSignOut) {
  for (const [button, way, field] of [["use-key", "key", "key"], ["use-person", "person", "email"]]) {
    at(button).addEventListener("click", () => {
      choose(way);
      at(field).focus();
    });
  }
  at("sign-in-form").addEventListener("submit", (event) => {
    event.preventDefault();
    keepKey(at("key").value.trim());
    at("key").value = "";
    onSignIn();
  });
  at("person-form").addEventListener("submit", async (event) => {
    event.preventDefault();
    await signIn(onSignIn);
  });
  at("sign-out").addEventListener("click", () => onSignOut(""));
  at("end-session").addEventListener("click", () => endSession(onSignOut));
  asMenu(at("account"));
  at("account").addEventListener("click", (event) => {
    if (event.target.closest("a")) at("account").open = false;
  });
}

async function signIn(onSignIn) {
  const button = at("person-sign-in");
  button.disabled = true;
  at("sign-in-problem").textContent = "";
  try {
    await authenticate("sign-in/email", { email: at("email").value.trim(), password: at("password").value });
    at("password").value = "";
    await fetchOwnProfile();
  } catch (error) {
    if (error.code === "second_factor_required") return location.assign("/sign-in/code");
    at("sign-in-problem").textContent = signInMessage(error);
    at("password").select();
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
    at("live").textContent = `You are still signed in: ${error.message}`;
    at("live").classList.add("bad");
    return;
  }
  onSignOut("");
}
