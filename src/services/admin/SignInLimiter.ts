import { Cache, Clock, Context, Effect, Layer } from "effect"
import { SignInLimited } from "../../domain/Failure.ts"

const windowMillis = 60_000
const maxFailures = 10
const maxAddresses = 10_000

/** Ten failed attempts a minute from one address, per process. Valid credentials are never refused: others share the address. */
export class SignInLimiter extends Context.Tag("gateway/SignInLimiter")<
  SignInLimiter,
  {
    /** Counts a failed attempt. Fails if there were too many before it. */
    readonly fail: (address: string) => Effect.Effect<void, SignInLimited>
  }
>() {
  static readonly layer = Layer.effect(
    SignInLimiter,
    Effect.gen(function* () {
      const windows = yield* Cache.make({
        capacity: maxAddresses,
        timeToLive: windowMillis,
        lookup: (_address: string) => Effect.map(Clock.currentTimeMillis, (startedAt) => ({ startedAt, failures: 0 }))
      })
      return SignInLimiter.of({
        fail: Effect.fnUntraced(function* (address) {
          const window = yield* windows.get(address)
          if (window.failures >= maxFailures) {
            const leftMillis = window.startedAt + windowMillis - (yield* Clock.currentTimeMillis)
            return yield* new SignInLimited({ retryAfterSeconds: Math.max(1, Math.ceil(leftMillis / 1000)) })
          }
          window.failures += 1
        })
      })
    })
  )
}
