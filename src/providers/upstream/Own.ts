import { Redacted } from "effect"
import type { ProviderAccount } from "../../domain/Model.ts"
import type { FetchRequest } from "../../services/Fetcher.ts"
import type { UpstreamRequest } from "../Upstream.ts"

/** An account's own origin for the fetcher, with the headers of its calls: the credential goes nowhere else. */
export const ownOrigin = (
  account: ProviderAccount,
  authorization: UpstreamRequest["authorization"]
): FetchRequest["own"] => {
  if (account.baseUrl === undefined) return undefined
  const { credential } = account
  const own = Object.entries(account.headers).map(([name, value]) => [name.toLowerCase(), value])
  return {
    origin: new URL(account.baseUrl).origin,
    headers: { ...(credential && authorization(Redacted.value(credential))), ...Object.fromEntries(own) }
  }
}
