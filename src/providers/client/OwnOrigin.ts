import { Redacted } from "effect"
import type { ProviderAccount } from "../../domain/Model.ts"
import type { FetchFailed, FetchRequest } from "../../services/media/Fetcher.ts"
import { type FailureClass, ProviderFailure } from "../../services/routing/Provider.ts"
import { toLoggable, type UpstreamRequest } from "./Upstream.ts"

/** The credential goes nowhere else. */
const ownOrigin = (account: ProviderAccount, authorization: UpstreamRequest["authorization"]): FetchRequest["own"] => {
  if (account.baseUrl === undefined) return undefined
  const { credential } = account
  const own = Object.entries(account.headers).map(([name, value]) => [name.toLowerCase(), value])
  return {
    origin: new URL(account.baseUrl).origin,
    headers: { ...(credential && authorization(Redacted.value(credential))), ...Object.fromEntries(own) }
  }
}

export const resultRequest = (
  account: ProviderAccount,
  authorization: UpstreamRequest["authorization"],
  result: Pick<FetchRequest, "url" | "limitBytes" | "withinSeconds">
): FetchRequest => ({ ...result, from: "provider", own: ownOrigin(account, authorization) })

const classOf: Readonly<Record<FetchFailed["reason"], FailureClass>> = {
  refused: "retry",
  status: "retry",
  too_large: "retry",
  timeout: "timeout",
  network: "network"
}

/** 200 stands for the response that named the result. */
export const fetchFailure =
  (account: ProviderAccount) =>
  ({ detail, reason, status }: FetchFailed): ProviderFailure =>
    new ProviderFailure({
      class: classOf[reason],
      status: status ?? 200,
      spent: "whole",
      detail: toLoggable(account, `the result could not be fetched: ${reason} ${detail}`)
    })
