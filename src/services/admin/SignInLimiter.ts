import { Clock, Context, Effect, Layer } from "effect"
import { SignInLimited } from "../../domain/Failure.ts"

const windowMillis = 60_000
const maxFailures = 10
const maxAddresses = 10_000

interface Window {
  readonly startedAt: number
  readonly failures: number
}

/** Ten failed attempts a minute from one address, per process. Valid credentials are never refused: others share the address. */
export class SignInLimiter extends Context.Tag("gateway/SignInLimiter")<
  SignInLimiter,
  {
    /** Counts a failed attempt. Fails if there were too many before it. */
    readonly fail: (address: string) => Effect.Effect<void, SignInLimited>
  }
>() {
  static readonly layer = Layer.sync(SignInLimiter, () => {
    const windows = new Map<string, Window>()
    const current = (address: string, now: number): Window | undefined => {
      const found = windows.get(address)
      return found !== undefined && now - found.startedAt < windowMillis ? found : undefined
    }
    const forgetOld = (now: number): void => {
      for (const address of windows.keys()) if (current(address, now) === undefined) windows.delete(address)
    }
    return SignInLimiter.of({
      fail: Effect.fnUntraced(function* (address) {
        const now = yield* Clock.currentTimeMillis
        const { failures, startedAt } = current(address, now) ?? { failures: 0, startedAt: now }
        if (failures >= maxFailures) {
          const leftMillis = startedAt + windowMillis - now
          return yield* new SignInLimited({ retryAfterSeconds: Math.max(1, Math.ceil(leftMillis / 1000)) })
        }
        if (windows.size >= maxAddresses) forgetOld(now)
        if (windows.size < maxAddresses || windows.has(address)) {
          windows.set(address, { startedAt, failures: failures + 1 })
        }
      })
    })
  })
}
