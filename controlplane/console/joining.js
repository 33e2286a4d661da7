// Joining with an invitation link.

import { authenticate, forgetKey } from "./facade.js";
import { fetchOwnProfile } from "./signing_in.js";
import { byId } from "./elements.js";

let currentCode = "";

export const codeOfInvitation = () => location.hash.match(/^#\/join\/([\w-]+)$/)?.[1] || "";

// Shows the form for the invitation with this code. Throws if the invitation is not valid.
export async function showJoining(invitationCode) {
  const { email, organization, role } = await authenticate("invitation", { code: invitationCode });
  currentCode = invitationCode;
  byId("join-description").textContent = `You are invited to join ${organization} as ${role}.`;
  byId("join-email").value = email;
  byId("password-form").hidden = byId("key-form").hidden = true;
  byId("join-form").hidden = byId("sign-in").hidden = false;
  byId("join-name").focus();
}

export function prepareJoining(onJoined) {
  byId("join-form").addEventListener("submit", async (event) => {
    event.preventDefault();
    const [email, password] = [byId("join-email").value, byId("join-password").value];
    byId("join").disabled = true;
    byId("sign-in-problem").textContent = "";
    try {
      await authenticate("join", { code: currentCode, name: byId("join-name").value.trim(), password });
      history.replaceState(null, "", "/#/");  // the link is used up
      forgetKey();
      await authenticate("sign-in/email", { email, password });
      await fetchOwnProfile();
    } catch (error) {
      byId("sign-in-problem").textContent = error.message;
      return;
    } finally {
      byId("join").disabled = false;
    }
    byId("join-password").value = "";
    byId("join-form").hidden = true;
    onJoined();
  });
}
