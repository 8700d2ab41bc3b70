import { Effect, Either, type Scope } from "effect"
import type { OrgId } from "../../src/domain/Organization.ts"
import { type FirstClaim, Idempotency, type Replay } from "../../src/services/idempotency/Idempotency.ts"
import { IdempotencyBench } from "./IdempotencyBench.ts"

export const result = { created: 1, media: "a.png" }
export const request = (org: OrgId) => ({ org, endpoint: "images", key: "k", fingerprint: "f" }) as const

export const isFirst = (claim: FirstClaim | Replay): claim is FirstClaim => claim._tag === "First"
export const first = (claim: FirstClaim | Replay) =>
  isFirst(claim) ? Effect.succeed(claim) : Effect.dieMessage("somebody was first")

/** What an attempt came to, in one word. */
export const outcome = (idempotency: Idempotency["Type"], asked: Parameters<Idempotency["Type"]["claim"]>[0]) =>
  Effect.scoped(idempotency.claim(asked)).pipe(
    Effect.either,
    Effect.map(Either.match({ onLeft: ({ _tag }) => _tag, onRight: ({ _tag }) => _tag }))
  )

export const arranged = Effect.gen(function* () {
  const bench = yield* IdempotencyBench
  const idempotency = yield* Idempotency
  const org = yield* bench.organization
  return { bench, idempotency, org, asked: request(org) }
})

/** Runs the body under the first claim of a key, which ends with it. */
export const withFirstClaim = (
  asked: Parameters<Idempotency["Type"]["claim"]>[0],
  body: (claim: FirstClaim) => Effect.fn.Return<unknown, unknown, Idempotency | IdempotencyBench | Scope.Scope>
) =>
  Effect.flatMap(Idempotency, ({ claim }) => Effect.flatMap(claim(asked), first)).pipe(
    Effect.flatMap(Effect.fnUntraced(body)),
    Effect.scoped
  )
