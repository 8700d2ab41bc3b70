import { Clock, Effect, Predicate } from "effect"
import type { RouteBase } from "../../domain/Model.ts"
import { ProviderFailure } from "../../services/routing/Provider.ts"
import { Ids } from "../../services/runtime/Ids.ts"
import { jsonPieces } from "../../services/runtime/Pieces.ts"
import { malformed, parse } from "../client/Classification.ts"
import type { UpstreamAnswer } from "../client/Exchange.ts"
import { Upstream } from "../client/Upstream.ts"
import { isGood } from "../client/UpstreamResponse.ts"
import type { Handle } from "../jobs/Handle.ts"
import type { Submission } from "../jobs/Input.ts"
import type { Progress } from "../jobs/Progress.ts"
import { doubtful, submitted } from "../jobs/Submit.ts"
import { isEarly, isOutcome, refusal } from "./Failure.ts"
import { handleIn } from "./Handle.ts"
import { resultIn } from "./Result.ts"

export const authorization = (secret: string) => ({ authorization: `Key ${secret}` })

const refusedAs = ({ provider }: RouteBase, answer: UpstreamAnswer) =>
  Effect.map(Clock.currentTimeMillis, (now) => refusal(provider, answer, now))

/** fal's queue: a job is put in, asked after until it is over, and its result taken. */
export const make = Effect.gen(function* () {
  const upstream = yield* Upstream
  const ids = yield* Ids

  const call = (route: RouteBase, method: "GET" | "PUT", path: string) =>
    upstream.post({ account: route.provider, method, path, authorization })

  const submit = Effect.fnUntraced(function* (route: RouteBase, { input, model }: Submission) {
    const body = jsonPieces(input, ids.unguessable())
    const request = { account: route.provider, path: `/${model}`, authorization, body }
    const answer = yield* submitted(upstream, request)
    if (!isGood(answer)) return yield* yield* refusedAs(route, answer)
    const handle = handleIn(route.provider, model, parse(answer.body))
    if (handle === undefined) return yield* doubtful(route.provider, "network", `${answer.status} without a job`)
    return { handle, progress: { state: "queued" } satisfies Progress }
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
