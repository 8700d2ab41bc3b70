import { Data } from "effect"
import {
  AllProvidersFailed,
  ContentRejected,
  NoHealthyProvider,
  type RoutingFailure,
  TimedOut,
  UpstreamAuthFailed,
  UpstreamFailed,
  UpstreamRejected
} from "../../domain/Failure.ts"
import type { RouteBase } from "../../domain/Model.ts"
import type { FailureClass, ProviderFailure } from "./Provider.ts"

/** A failed try. */
export class Failed extends Data.TaggedError("Failed")<{
  readonly route: RouteBase
  readonly failure: ProviderFailure
}> {}

/** Whether the failure is the request's own: no other route is asked, and the route is not to blame. */
export const isFinal = (kind: FailureClass): boolean => kind === "request" || kind === "moderation"

/** What the client is told after the last try; `several` routes were able to serve the request, or just one. */
export const verdict = (last: Failed | undefined, several: boolean): RoutingFailure => {
  if (last === undefined) return new NoHealthyProvider()
  const { class: kind, param, status } = last.failure
  if (kind === "moderation") return new ContentRejected()
  if (kind === "request") return new UpstreamRejected({ param: param ?? null })
  if (kind === "timeout") return new TimedOut()
  const provider = last.route.provider.name
  if (several || status === undefined) return new AllProvidersFailed({ provider, status: status ?? "network" })
  if (kind === "account") return new UpstreamAuthFailed()
  if (status === 429) return new AllProvidersFailed({ provider, status })
  return new UpstreamFailed()
}
