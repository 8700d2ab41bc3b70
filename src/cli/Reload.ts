import { Effect } from "effect"
import { nounFor, pluralize } from "../domain/Plural.ts"
import { awaitReload, requestReload } from "../services/admin/CatalogReload.ts"
import { command } from "./Commands.ts"
import { table } from "./Output.ts"

const columns = ["id", "host", "pid", "state", "fingerprint", "models"]

export const reload = command(
  "reload",
  "Let every instance read its catalog and its credentials again; one that refuses goes on with what it had.",
  {},
  Effect.fnUntraced(function* () {
    const { record } = yield* requestReload
    const rows = yield* awaitReload(record.generation)
    const failed = rows.filter(({ state }) => state !== "reloaded").length
    const problems = new Set(rows.flatMap(({ problem }) => problem ?? []))
    const fingerprints = new Set(rows.flatMap(({ fingerprint }) => fingerprint ?? []))
    const text = [
      table(rows, columns, "No gateway is running; each reads its catalog when it starts."),
      ...problems,
      ...(fingerprints.size > 1 ? ["The instances serve different catalogs."] : [])
    ].join("\n\n")
    const failure = `${failed} of ${pluralize(rows.length, "instance")} ${nounFor(failed, "keeps its", "keep their")} previous catalog.`
    return { document: { data: rows }, text, failure: failed === 0 ? undefined : failure }
  })
)
