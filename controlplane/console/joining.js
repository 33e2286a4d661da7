// Joining with an invitation link.

import { authenticate, forgetKey } from "./facade.js";
import { fetchOwnProfile } from "./signing_in.js";

const at = (id) => document.getElementById(id);
let code = "";

export const codeOfInvitation = () => location.hash.match(/^#\/join\/([\w-]+)$/)?.[1] || "";

// Shows the form for the invitation with this code. Throws if the invitation is not valid.
export async function showJoining(invitationCode) {
  const { email, organization, role } = await authenticate("invitation", { code: invitationCode });
  code = invitationCode;
  at("join-what").textContent = `You are invited to join ${organization} as ${role}.`;
  at("join-email").value = email;
  at("person-form").hidden = at("sign-in-form").hidden = true;
  at("join-form").hidden = at("sign-in").hidden = false;
  at("join-name").focus();
}

export function prepareJoining(entered) {
  at("join-form").addEventListener("submit", async (event) => {
    event.preventDefault();
    const [email, password] = [at("join-email").value, at("join-password").value];
    at("join").disabled = true;
    at("sign-in-problem").textContent = "";
    try {
      await authenticate("join", { code, name: at("join-name").value.trim(), password });
      history.replaceState(null, "", "/#/");  // the link is used up
      forgetKey();
      await authenticate("sign-in/email", { email, password });
      await fetchOwnProfile();
    } catch (error) {
      at("sign-in-problem").textContent = error.message;
      return;
    } finally {
      at("join").disabled = false;
    }
    at("join-password").value = "";
    at("join-form").hidden = true;
    entered();
  });
}
