// Runs oidc-provider on loopback, with its own pages for signing in and consent.
//
//   node provider.mjs MODULE ACCOUNTS CLIENT
//
// MODULE is the folder of oidc-provider's modules. ACCOUNTS is a JSON file with the claims of each
// user; it is read for each look-up. CLIENT is the metadata of the client as JSON. The first line of
// the output is the issuer. On SIGHUP, the provider replaces its signing key and prints the new key's
// id. Its sessions and tokens stay valid, because its adapter stays the same.

import { generateKeyPairSync, randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";

const [module, accounts, client] = process.argv.slice(2);
const { Provider } = await import(`${module}/index.js`);
const { createMemoryAdapter } = await import(`${module}/adapters/memory_adapter.js`);
const adapter = createMemoryAdapter();
const cookieKeys = [randomBytes(32).toString("hex")];
let handler;
console.info = console.error; // the provider's own notices

const server = createServer((request, response) => handler(request, response));
server.listen(0, "127.0.0.1", () => {
  const issuer = `http://127.0.0.1:${server.address().port}`;
  start(issuer);
  process.on("SIGHUP", () => console.log(start(issuer)));
  console.log(issuer);
});

function start(issuer) {
  const kid = randomBytes(8).toString("hex");
  const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
  const provider = new Provider(issuer, {
    adapter,
    clients: [JSON.parse(client)],
    claims: { openid: ["sub"], email: ["email", "email_verified"], profile: ["name", "groups"] },
    cookies: { keys: cookieKeys },
    findAccount,
    // By default, a refresh token needs the scope offline_access and a consent each time.
    issueRefreshToken: async (_, { grantTypes }) => grantTypes.includes("refresh_token"),
    jwks: { keys: [{ ...privateKey.export({ format: "jwk" }), kid, use: "sig" }] },
    pkce: { required: () => true },
  });
  handler = provider.callback();
  return kid;
}

function findAccount(_, id) {
  const claims = JSON.parse(readFileSync(accounts, "utf-8"))[id];
  return claims && { accountId: id, claims: () => ({ ...claims, sub: id }) };
}
