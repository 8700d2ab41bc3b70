import { Clock, Effect, Option } from "effect"
import type { RouteBase } from "../../domain/Model.ts"
import type { ProviderFailure } from "../../services/routing/Provider.ts"
import * as EventLoop from "../../services/runtime/EventLoop.ts"
import { parse, refusal } from "./Classification.ts"
import type { Taken, UpstreamAnswer } from "./Exchange.ts"
import type { UpstreamStream } from "./Upstream.ts"

const pieceLimitBytes = 16 * 1024 * 1024

export const isGood = (head: { readonly status: number }): boolean => head.status >= 200 && head.status < 300

const contentType = (stream: UpstreamStream): string => String(stream.headers["content-type"] ?? "").toLowerCase()

/** Whether a stream's request was answered with events, as far as the head tells. */
export const isStream = (stream: UpstreamStream): boolean => isGood(stream) && !/json|html/.test(contentType(stream))

/** What a stream's request was answered with in one piece; an error's body is taken as far as it came. */
export const gathered = (stream: UpstreamStream): Effect.Effect<UpstreamAnswer, ProviderFailure> => {
  const { headers, status } = stream
  const chunks: Array<Uint8Array> = []
  let bytes = 0
  return Effect.async((resume) => {
    let callOff = () => {}
    const whole = (): UpstreamAnswer => ({ status, headers, body: Buffer.concat(chunks).toString("utf8") })
    const take = (taken: Taken): void => {
      if (taken._tag === "Over") {
        const { outcome } = taken
        return resume(isGood(stream) && Option.isSome(outcome) ? Effect.fail(outcome.value) : Effect.succeed(whole()))
      }
      for (const chunk of taken.chunks) bytes += chunk.length
      chunks.push(...taken.chunks)
      if (bytes > pieceLimitBytes) return resume(Effect.succeed({ status, headers, body: "" }))
      callOff = stream.next(take)
    }
    callOff = stream.next(take)
    return Effect.sync(() => callOff())
  })
}

/** An answer's JSON, where a picture of many MiB may be in it: others get their turn before and after it is parsed. */
export const parsed = (answer: UpstreamAnswer): Effect.Effect<unknown> =>
  EventLoop.turn.pipe(
    Effect.map(() => parse(answer.body)),
    Effect.zipLeft(EventLoop.turn)
  )

/** The failure that an answer means. */
export const refused = (route: RouteBase, answer: UpstreamAnswer): Effect.Effect<never, ProviderFailure> =>
  Effect.flatMap(Clock.currentTimeMillis, (now) => Effect.fail(refusal(route.provider, answer, now)))
