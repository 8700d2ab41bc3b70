import { Effect } from "effect"
import { CatalogReloads, type InstanceCatalog } from "../services/control/CatalogReloads.ts"
import { command } from "./Commands.ts"
import { type Fields, table } from "./Output.ts"

const longestWait = "10 seconds"

const hasAnswered =
  (asked: number) =>
  ({ generation }: InstanceCatalog) =>
    (generation ?? 0) >= asked

const stateOf = (one: InstanceCatalog, asked: number) => {
  if (!hasAnswered(asked)(one)) return "no answer"
  return one.problem === null ? "reloaded" : "refused"
}

const rowOf = (one: InstanceCatalog, asked: number): Fields => ({
  id: one.instance,
  host: one.host,
  pid: one.pid,
  state: stateOf(one, asked),
  fingerprint: one.fingerprint,
  models: one.models,
  problem: hasAnswered(asked)(one) ? one.problem : null
})

const columns = ["id", "host", "pid", "state", "fingerprint", "models"]

export const reload = command(
  "reload",
  "Let every instance read its catalog and its credentials again; one that refuses goes on with what it had.",
  {},
  Effect.fnUntraced(function* () {
    const reloads = yield* CatalogReloads
    const asked = yield* reloads.request
    const answered = Effect.delay(reloads.list, "100 millis").pipe(
      Effect.repeat({ until: (all) => all.every(hasAnswered(asked)) }),
      Effect.timeout(longestWait),
      Effect.catchTag("TimeoutException", () => reloads.list)
    )
    const all = yield* answered
    const rows = all.map((one) => rowOf(one, asked))
    const failed = rows.filter(({ state }) => state !== "reloaded").length
    const problems = new Set(all.flatMap((one) => (hasAnswered(asked)(one) ? (one.problem ?? []) : [])))
    const fingerprints = new Set(all.flatMap(({ fingerprint }) => fingerprint ?? []))
    const text = [
      table(rows, columns, "No gateway is running; each reads its catalog when it starts."),
      ...problems,
      ...(fingerprints.size > 1 ? ["The instances serve different catalogs."] : [])
    ].join("\n\n")
    const failure = `${failed} of ${rows.length} instances go on with the catalog they had.`
    return { document: { data: rows }, text, failure: failed === 0 ? undefined : failure }
  })
)
