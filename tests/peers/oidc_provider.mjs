// A certified OpenID provider on loopback. Who logs in is who they say; a file has their groups, by name.
import { readFile } from "node:fs/promises";
import { Provider } from "oidc-provider";

const [port, redirectUri, groupsFile] = process.argv.slice(2);
const claimsOf = async (name) => {
  const groups = JSON.parse(await readFile(groupsFile, "utf8"));
  return { sub: name, preferred_username: name, groups: groups[name] ?? [] };
};
const provider = new Provider(`http://127.0.0.1:${port}`, {
  clients: [{ client_id: "chatd", client_secret: "s3cret-of-the-client", redirect_uris: [redirectUri] }],
  claims: { openid: ["sub"], profile: ["preferred_username", "groups"], email: ["email", "email_verified"] },
  findAccount: (_, name) => ({ accountId: name, claims: () => claimsOf(name) }),
  pkce: { required: () => true },
  features: { devInteractions: { enabled: true } },
  cookies: { keys: ["of a test"] },
});
provider.listen(Number(port), "127.0.0.1", () => console.log("ready"));
