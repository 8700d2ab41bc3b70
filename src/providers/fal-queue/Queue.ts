import { Clock, Effect, Predicate } from "effect"
import type { RouteBase } from "../../domain/Model.ts"
import { ProviderFailure } from "../../services/Provider.ts"
import { malformed, parse } from "../Classification.ts"
import { loggable, Upstream } from "../Upstream.ts"
import type { UpstreamAnswer } from "../upstream/Exchange.ts"
import { isEarly, isOutcome, refusal } from "./Failure.ts"
import { type Handle, handleIn } from "./Handle.ts"
import type { Submission } from "./Input.ts"
import { type Media, resultIn } from "./Result.ts"

/** How a job ended. */
export type End =
  | { readonly state: "done"; readonly media: Media }
  | { readonly state: "failed"; readonly failure: ProviderFailure }

/** Where a job stands; a failure of the effect that says so is that of the asking. */
export type Progress = { readonly state: "queued" | "in_progress" } | End

export const authorization = (secret: string) => ({ authorization: `Key ${secret}` })

const isGood = ({ status }: UpstreamAnswer) => status >= 200 && status < 300

const refusedAs = ({ provider }: RouteBase, answer: UpstreamAnswer) =>
  Effect.map(Clock.currentTimeMillis, (now) => refusal(provider, answer, now))

/** Nobody knows whether the job was taken. No status: what came, if anything came, was not the queue's answer. */
const unknown = ({ provider }: RouteBase, failure: "network" | "timeout", what: string) =>
  new ProviderFailure({ class: failure, status: undefined, detail: loggable(provider, what) })

/** An error page comes from something in front of the queue, which may have taken the job behind it. */
const isLost = (answer: UpstreamAnswer) =>
  answer.status >= 500 && answer.status !== 503 && parse(answer.body) === undefined

const unanswered = (route: RouteBase) => (failure: ProviderFailure) => {
  if (failure.status === undefined) return failure
  const lost = failure.class === "timeout" ? "timeout" : "network"
  return unknown(route, lost, `the answer to a submit broke: ${failure.status} ${failure.detail}`)
}

/** fal's queue: a job is put in, asked after until it is over, and its result taken. */
export const make = Effect.map(Upstream, (upstream) => {
  const call = (route: RouteBase, method: "GET" | "PUT", path: string) =>
    upstream.post({ account: route.provider, method, path, authorization })

  const submit = Effect.fnUntraced(function* (route: RouteBase, { input, model }: Submission) {
    const request = { account: route.provider, path: `/${model}`, authorization, body: JSON.stringify(input) }
    const answer = yield* Effect.mapError(upstream.post(request), unanswered(route))
    if (isLost(answer)) {
      return yield* unknown(route, answer.status === 504 ? "timeout" : "network", `${answer.status} ${answer.body}`)
    }
    if (!isGood(answer)) return yield* yield* refusedAs(route, answer)
    const handle = handleIn(route.provider, model, parse(answer.body))
    if (handle === undefined) return yield* unknown(route, "network", `${answer.status} without a job`)
    return handle
  })

  const result = Effect.fnUntraced(function* (route: RouteBase, handle: Handle) {
    const answer = yield* call(route, "GET", handle.result)
    const body = parse(answer.body)
    if (isGood(answer) && body === undefined) return yield* malformed(route.provider, answer.status, "no JSON")
    const found = isGood(answer) ? resultIn(body) : isEarly(answer) ? "pending" : "nothing"
    if (typeof found === "object") return { state: "done", media: found } satisfies Progress
    if (found === "pending") return { state: "in_progress" } satisfies Progress
    if (found === "moderated") {
      const failure = new ProviderFailure({ class: "moderation", status: answer.status, detail: "has_nsfw_concepts" })
      return { state: "failed", failure } satisfies Progress
    }
    const failure = yield* refusedAs(route, answer)
    if (!isGood(answer) && !isOutcome(answer, failure)) return yield* failure
    return { state: "failed", failure } satisfies Progress
  })

  const progress = Effect.fnUntraced(function* (route: RouteBase, handle: Handle) {
    const answer = yield* call(route, "GET", handle.status)
    if (!isGood(answer)) return yield* yield* refusedAs(route, answer)
    const body = parse(answer.body)
    if (!Predicate.isRecord(body) || typeof body.status !== "string") {
      return yield* malformed(route.provider, answer.status, "a status without one")
    }
    if (body.status === "COMPLETED") return yield* result(route, handle)
    return { state: body.status === "IN_PROGRESS" ? "in_progress" : "queued" } satisfies Progress
  })

  const cancel = Effect.fnUntraced(function* (route: RouteBase, handle: Handle) {
    const answer = yield* call(route, "PUT", handle.cancel)
    const body = parse(answer.body)
    const over = Predicate.isRecord(body) && body.status === "ALREADY_COMPLETED"
    if (!isGood(answer) && !over) return yield* yield* refusedAs(route, answer)
  })

  return { submit, progress, result, cancel }
})
