import { Clock, Effect } from "effect"
import type { RouteBase } from "../../domain/Model.ts"
import { Ids } from "../../services/runtime/Ids.ts"
import { jsonPieces } from "../../services/runtime/Pieces.ts"
import { malformed, parse } from "../client/Classification.ts"
import type { UpstreamAnswer } from "../client/Exchange.ts"
import { Upstream, type UpstreamRequest } from "../client/Upstream.ts"
import { isGood } from "../client/UpstreamResponse.ts"
import type { Handle } from "../jobs/Handle.ts"
import type { Submission } from "../jobs/Input.ts"
import type { Progress } from "../jobs/Progress.ts"
import { doubtful, submitted } from "../jobs/Submit.ts"
import { refusal } from "./Failure.ts"
import { handleIn, progressIn } from "./Prediction.ts"

export const authorization = (secret: string) => ({ authorization: `Bearer ${secret}` })

/** Longer than anybody waits for a picture: one whose answer nobody heard must not run on, and be paid, for long. */
const pictureHeaders = { prefer: "wait=30", "cancel-after": "5m" }
const clipHeaders = { prefer: "respond-async" }

const refused = ({ provider }: RouteBase, answer: UpstreamAnswer) =>
  Effect.flatMap(Clock.currentTimeMillis, (now) => Effect.fail(refusal(provider, answer, now)))

/** A model is `owner/name`; a community's is run by its version, `owner/name:version`. */
const target = ({ input, model }: Submission, mark: string) => {
  const [name = "", version] = model.split(":")
  return version === undefined
    ? { path: `/v1/models/${name}/predictions`, body: jsonPieces({ input }, mark) }
    : { path: "/v1/predictions", body: jsonPieces({ version, input }, mark) }
}

/** Replicate's predictions: created, asked after until they are over, or cancelled. */
export const make = Effect.gen(function* () {
  const upstream = yield* Upstream
  const ids = yield* Ids

  const submit = Effect.fnUntraced(function* (route: RouteBase, submission: Submission, waiting: boolean) {
    const account = route.provider
    const headers = waiting ? pictureHeaders : clipHeaders
    const request: UpstreamRequest = { account, authorization, headers, ...target(submission, ids.unguessable()) }
    const answer = yield* submitted(upstream, request)
    if (!isGood(answer)) return yield* refused(route, answer)
    const told = { status: answer.status, body: parse(answer.body) }
    const handle = handleIn(account, told)
    if (handle === undefined) return yield* doubtful(account, "network", `${answer.status} without a prediction`)
    const progress: Progress = progressIn(account, told) ?? { state: "queued" }
    return { handle, progress }
  })

  const progress = Effect.fnUntraced(function* (route: RouteBase, handle: Handle) {
    const account = route.provider
    const answer = yield* upstream.post({ account, method: "GET", path: handle.status, authorization })
    if (!isGood(answer)) return yield* refused(route, answer)
    const found = progressIn(account, { status: answer.status, body: parse(answer.body) })
    return found ?? (yield* malformed(account, answer.status, "a prediction without a status"))
  })

  const cancel = Effect.fnUntraced(function* (route: RouteBase, handle: Handle) {
    const answer = yield* upstream.post({ account: route.provider, path: handle.cancel, authorization })
    if (!isGood(answer)) return yield* refused(route, answer)
  })

  return { submit, progress, result: progress, cancel }
})
