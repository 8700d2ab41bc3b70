import { useState } from "preact/hooks"
import type { ApiError } from "../api/ApiError.ts"
import { ErrorBox } from "../parts/ErrorBox.tsx"
import { signIn } from "../Session.ts"

export const SignIn = ({ error }: { readonly error: ApiError | undefined }) => {
  const [token, setToken] = useState("")
  const [isBusy, setBusy] = useState(false)
  const submit = (event: Event) => {
    event.preventDefault()
    setBusy(true)
    void signIn({ token: token.trim() }).then(() => setBusy(false))
  }
  return (
    <main class="sign-in">
      <form onSubmit={submit}>
        <h1>Gateway console</h1>
        {error && <ErrorBox error={error} />}
        <label class="field">
          <span>Operator's token</span>
          <input
            type="password"
            autocomplete="current-password"
            required
            value={token}
            onInput={({ currentTarget }) => setToken(currentTarget.value)}
          />
        </label>
        <button class="primary" disabled={isBusy}>
          Sign in
        </button>
        <p class="soft">
          An operator's token, or a link that signs you in once, comes from <code>gateway operators create</code>;
          customers get theirs from who runs this gateway.
        </p>
      </form>
    </main>
  )
}
