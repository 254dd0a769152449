import { useEffect, useState } from "preact/hooks";
import { loginMethods, type LoginMethods } from "../api";

/** Shown instead of everything else while there is no login or no server. */

export function Blocked({ why }: { why: "login" | "offline" }) {
  return (
    <main class="blocked">
      <div class="blocked-card">
        <img src="assets/icon.svg" alt="" width="40" height="40" />
        {why === "login" ? <Login /> : <Offline />}
      </div>
    </main>
  );
}

function Login() {
  const [methods, setMethods] = useState<LoginMethods>({ oidc: null });
  useEffect(() => void loginMethods().then(setMethods), []);
  return (
    <>
      <h1>Log in</h1>
      {methods.oidc && (
        <a class="button primary" href={methods.oidc.url} data-testid="sign-in">
          Sign in with {methods.oidc.title}
        </a>
      )}
      <p>
        Open the URL that <code>agentd up</code> printed, or run <code>agentd login-url</code> for a
        new one; elsewhere an administrator makes one for you. It logs this browser in.
      </p>
    </>
  );
}

function Offline() {
  return (
    <>
      <h1>No answer</h1>
      <p>The server cannot be reached. Is it running? This page keeps trying.</p>
    </>
  );
}
