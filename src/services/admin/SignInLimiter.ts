import { Clock, Context, Effect, Layer } from "effect"
import { SignInLimited } from "../../domain/Failure.ts"

const windowMillis = 60_000
const maxFailures = 10
const maxAddresses = 10_000

interface Window {
  readonly startedAt: number
  readonly failures: number
}

/** Ten failed attempts a minute from one address, per process. */
export class SignInLimiter extends Context.Tag("gateway/SignInLimiter")<
  SignInLimiter,
  {
    readonly check: (address: string) => Effect.Effect<void, SignInLimited>
    readonly fail: (address: string) => Effect.Effect<void>
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
      check: (address) =>
        Effect.flatMap(Clock.currentTimeMillis, (now) => {
          const found = current(address, now)
          if (found === undefined || found.failures < maxFailures) return Effect.void
          const leftMillis = found.startedAt + windowMillis - now
          return new SignInLimited({ retryAfterSeconds: Math.max(1, Math.ceil(leftMillis / 1000)) })
        }),
      fail: (address) =>
        Effect.map(Clock.currentTimeMillis, (now) => {
          const { failures, startedAt } = current(address, now) ?? { failures: 0, startedAt: now }
          if (windows.size >= maxAddresses) forgetOld(now)
          if (windows.size < maxAddresses || windows.has(address)) {
            windows.set(address, { startedAt, failures: failures + 1 })
          }
        })
    })
  })
}
