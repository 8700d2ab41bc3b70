import { assert, layer as withLayer } from "@effect/vitest"
import { Effect, Exit, type Layer, Scope } from "effect"
import type { Idempotency } from "../../src/services/idempotency/Idempotency.ts"
import { deaths, type IdempotencyBench } from "./IdempotencyBench.ts"
import { arranged, first, outcome, request, result, withFirstClaim } from "./IdempotencyClaims.ts"

/** What every keeper of keys must do, wherever it keeps them. */
export const idempotencyContract = (name: string, layer: Layer.Layer<Idempotency | IdempotencyBench, unknown>) =>
  withLayer(layer, { excludeTestServices: true, timeout: "60 seconds" })(
    `${name}: the contract of idempotency`,
    (it) => {
      it.effect("one at a time: the key is taken, and free again when its scope closes", () =>
        Effect.gen(function* () {
          const { asked, idempotency } = yield* arranged
          yield* withFirstClaim(asked, function* () {
            assert.strictEqual(yield* outcome(idempotency, asked), "IdempotencyConflict")
            assert.strictEqual(yield* outcome(idempotency, asked), "IdempotencyConflict")
          })
          assert.strictEqual(yield* outcome(idempotency, asked), "First")
        })
      )

      it.effect("a kept result is replayed at once, and for good", () =>
        Effect.gen(function* () {
          const { asked, bench, idempotency, org } = yield* arranged
          yield* withFirstClaim(asked, function* (claim) {
            const hold = yield* bench.payment(org)
            yield* claim.keep(result, hold)
            yield* claim.keep(result, hold)
            yield* claim.bind(result, hold)
            assert.deepStrictEqual(yield* idempotency.claim(asked), { _tag: "Replay", result })
          })
          assert.deepStrictEqual(yield* Effect.scoped(idempotency.claim(asked)), { _tag: "Replay", result })
        })
      )

      it.effect("a key is known while its request runs and once it has a result, and to nobody else", () =>
        Effect.gen(function* () {
          const { asked, bench, idempotency, org } = yield* arranged
          const known = () => idempotency.isKnown(asked)
          assert.isFalse(yield* known())
          yield* withFirstClaim(asked, function* (claim) {
            assert.isTrue(yield* known())
            yield* claim.keep(result, yield* bench.payment(org))
          })
          assert.isTrue(yield* known())
          assert.isFalse(yield* idempotency.isKnown({ ...asked, key: `${asked.key}-other` }))
          const other = asked.endpoint === "images" ? "videos" : "images"
          assert.isFalse(yield* idempotency.isKnown({ ...asked, endpoint: other }))
        })
      )

      it.effect("a bound result conflicts while its request runs, and is final after it", () =>
        Effect.gen(function* () {
          const { asked, bench, idempotency, org } = yield* arranged
          yield* withFirstClaim(asked, function* (claim) {
            const hold = yield* bench.payment(org)
            yield* claim.bind(result, hold)
            yield* claim.bind(result, hold)
            assert.strictEqual(yield* outcome(idempotency, asked), "IdempotencyConflict")
          })
          assert.deepStrictEqual(yield* Effect.scoped(idempotency.claim(asked)), { _tag: "Replay", result })
        })
      )

      it.effect("a bound key can be freed", () =>
        Effect.gen(function* () {
          const { asked, bench, idempotency, org } = yield* arranged
          yield* withFirstClaim(asked, function* (claim) {
            const hold = yield* bench.payment(org)
            yield* claim.bind(result, hold)
            yield* claim.free
            assert.strictEqual((yield* Effect.flip(claim.bind(result, hold)))._tag, "IdempotencyConflict")
            assert.strictEqual(yield* outcome(idempotency, asked), "First")
          })
          assert.strictEqual(yield* outcome(idempotency, asked), "First")
        })
      )

      it.effect("a different request under the same key is refused, while the first runs and after it", () =>
        Effect.gen(function* () {
          const { asked, bench, idempotency, org } = yield* arranged
          const other = { ...asked, fingerprint: "g" }
          yield* withFirstClaim(asked, function* (claim) {
            const refused = yield* Effect.flip(idempotency.claim(other))
            assert.deepInclude(refused, { _tag: "InvalidRequest", param: null })
            assert.include(refused.message, "`Idempotency-Key`")
            yield* claim.keep(result, yield* bench.payment(org))
          })
          assert.strictEqual(yield* outcome(idempotency, other), "InvalidRequest")
          assert.strictEqual(yield* outcome(idempotency, asked), "Replay")
        })
      )

      it.effect("keys of other organizations and endpoints are other keys", () =>
        Effect.gen(function* () {
          const { asked, bench, idempotency } = yield* arranged
          yield* idempotency.claim(asked)
          for (const other of [
            request(yield* bench.organization),
            { ...asked, endpoint: "videos" } as const,
            { ...asked, key: "K" }
          ]) {
            assert.strictEqual(yield* outcome(idempotency, other), "First")
          }
        }).pipe(Effect.scoped)
      )

      it.effect("a result is kept exactly if its transaction is", () =>
        Effect.gen(function* () {
          const { asked, bench, idempotency, org } = yield* arranged
          for (const give of ["keep", "bind"] as const) {
            yield* withFirstClaim(asked, function* (claim) {
              const given = claim[give](result, yield* bench.payment(org))
              yield* Effect.flip(bench.atomically(Effect.zipRight(given, Effect.fail("rolled back"))))
              assert.strictEqual(yield* outcome(idempotency, asked), "IdempotencyConflict")
            })
            assert.strictEqual(yield* outcome(idempotency, asked), "First")
          }
        })
      )

      it.effect("what a dead process worked on goes to the next request, whatever that is", () =>
        Effect.gen(function* () {
          const { bench, idempotency } = yield* arranged
          for (const how of deaths) {
            const org = yield* bench.organization
            const dead = yield* bench.another
            const late = yield* Scope.make()
            const lost = yield* Effect.flatMap(Scope.extend(dead.idempotency.claim(request(org)), late), first)
            assert.strictEqual(yield* outcome(idempotency, request(org)), "IdempotencyConflict")
            yield* dead.die(how)

            const other = { ...request(org), fingerprint: "g" }
            const scope = yield* Scope.make()
            const claim = yield* Effect.flatMap(Scope.extend(idempotency.claim(other), scope), first)
            yield* lost.keep({ late: true }, yield* bench.payment(org))
            assert.strictEqual(
              (yield* Effect.flip(lost.bind({ late: true }, yield* bench.payment(org))))._tag,
              "IdempotencyConflict"
            )
            yield* lost.free
            yield* Scope.close(late, Exit.void)
            assert.strictEqual(yield* outcome(idempotency, other), "IdempotencyConflict")
            yield* claim.keep(result, yield* bench.payment(org))
            yield* Scope.close(scope, Exit.void)
            assert.deepStrictEqual(yield* Effect.scoped(idempotency.claim(other)), { _tag: "Replay", result })
          }
        }).pipe(Effect.scoped)
      )

      it.effect("what a dead process bound is final", () =>
        Effect.gen(function* () {
          const { bench, idempotency } = yield* arranged
          for (const how of deaths) {
            const org = yield* bench.organization
            const dead = yield* bench.another
            const scope = yield* Scope.make()
            const bound = yield* Effect.flatMap(Scope.extend(dead.idempotency.claim(request(org)), scope), first)
            const hold = yield* bench.payment(org)
            yield* bound.bind(result, hold)
            yield* dead.die(how)
            assert.strictEqual(yield* outcome(idempotency, { ...request(org), fingerprint: "g" }), "InvalidRequest")
            assert.deepStrictEqual(yield* Effect.scoped(idempotency.claim(request(org))), { _tag: "Replay", result })
            yield* bound.bind(result, hold)
            yield* Scope.close(scope, Exit.void)
            assert.strictEqual(yield* outcome(idempotency, request(org)), "Replay")
          }
        }).pipe(Effect.scoped)
      )
    }
  )
