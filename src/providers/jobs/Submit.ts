import { Effect } from "effect"
import type { ProviderAccount } from "../../domain/Model.ts"
import { ProviderFailure } from "../../services/routing/Provider.ts"
import { parse } from "../client/Classification.ts"
import type { UpstreamAnswer } from "../client/Exchange.ts"
import { loggable, type Upstream, type UpstreamRequest } from "../client/Upstream.ts"

/** Nobody knows whether the job was taken. No status: what came, if anything came, was not the host's answer. */
export const doubtful = (account: ProviderAccount, failure: "network" | "timeout", what: string): ProviderFailure =>
  new ProviderFailure({ class: failure, status: undefined, detail: loggable(account, what) })

/** An error page comes from something in front of the host, which may have taken the job behind it. */
const isLost = (answer: UpstreamAnswer) =>
  answer.status >= 500 && answer.status !== 503 && parse(answer.body) === undefined

const unanswered = (account: ProviderAccount) => (failure: ProviderFailure) => {
  if (failure.status === undefined) return failure
  const lost = failure.class === "timeout" ? "timeout" : "network"
  return doubtful(account, lost, `the answer to a submit broke: ${failure.status} ${failure.detail}`)
}

/** The host's own answer to a submit, good or bad; a failure without a status where nothing tells what became of it. */
export const submitted = Effect.fnUntraced(function* (upstream: Upstream["Type"], request: UpstreamRequest) {
  const { account } = request
  const answer = yield* Effect.mapError(upstream.post(request), unanswered(account))
  if (!isLost(answer)) return answer
  return yield* doubtful(account, answer.status === 504 ? "timeout" : "network", `${answer.status} ${answer.body}`)
})
