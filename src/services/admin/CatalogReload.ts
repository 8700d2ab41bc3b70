import { Effect, Schema } from "effect"
import { type Instance, Instances } from "../control/Instances.ts"
import { TextOrNull } from "../resources/Record.ts"
import { Audit } from "./Audit.ts"

const longestWait = "10 seconds"

const Reload = Schema.Struct({ generation: Schema.Number })

export const ReloadRecord = Schema.Struct({
  id: Schema.String.annotations({ description: "The instance's." }),
  host: TextOrNull,
  pid: Schema.NullOr(Schema.Number),
  state: Schema.Literal("reloaded", "refused", "no answer"),
  fingerprint: TextOrNull.annotations({ description: "Of the catalog that it serves." }),
  models: Schema.NullOr(Schema.Number),
  problem: TextOrNull.annotations({ description: "Why it goes on with the catalog it had." })
}).annotations({ identifier: "Reload" })
export type ReloadRecord = typeof ReloadRecord.Type

const hasAnswered =
  (asked: number) =>
  ({ generation }: Instance) =>
    (generation ?? 0) >= asked

const stateOf = (one: Instance, asked: number) => {
  if (!hasAnswered(asked)(one)) return "no answer"
  return one.problem === null ? "reloaded" : "refused"
}

const reloadRecord = (one: Instance, asked: number): ReloadRecord => ({
  id: one.id,
  host: one.host,
  pid: one.pid,
  state: stateOf(one, asked),
  fingerprint: one.fingerprint,
  models: one.models,
  problem: hasAnswered(asked)(one) ? one.problem : null
})

/** Every instance reads its own file again. */
export const requestReload = Effect.gen(function* () {
  const { create } = yield* Audit
  const { requestReload: request } = yield* Instances
  return yield* create({
    action: "catalog.reload",
    input: {},
    record: Reload,
    run: request,
    recordOf: (generation) => ({ generation }),
    targetOf: () => "catalog"
  })
})

/** The outcome of a reload on each instance, as soon as all have answered. */
export const awaitReload = Effect.fn("CatalogReload.await")(function* (generation: number) {
  const instances = yield* Instances
  const list = Effect.map(instances.list, (all) => all.filter(({ state }) => state === "running").toReversed())
  const all = yield* Effect.delay(list, "100 millis").pipe(
    Effect.repeat({ until: (all) => all.every(hasAnswered(generation)) }),
    Effect.timeout(longestWait),
    Effect.catchTag("TimeoutException", () => list)
  )
  return all.map((one) => reloadRecord(one, generation))
})
