/** `oldUrl` creates a database as an earlier version of the gateway left it. */

import { SqlClient } from "@effect/sql/SqlClient"
import { Effect, Layer, Redacted } from "effect"
import { Database } from "../../../src/database/Database.ts"
import { Migrations } from "../../../src/database/Migrations.ts"
import { numberedFiles } from "../../database/schema/Schema.ts"
import { directoryWith } from "../temporary.ts"
import { emptyUrl } from "./Postgres.ts"

const files = numberedFiles()
const old = files.filter(([file]) => file < "0045")

/** The migrations that the database lacks. */
export const outstanding: ReadonlyArray<string> = files.slice(old.length).map(([file]) => file)

/** Creates a database of version 0044, changes it by `statement`, and returns its URL. */
export const oldUrl = Effect.fnUntraced(function* (statement = "SELECT 1") {
  const url = yield* emptyUrl
  const directory = yield* directoryWith(Object.fromEntries(old))
  yield* Effect.gen(function* () {
    const { migrate } = yield* Migrations
    yield* migrate
    yield* (yield* SqlClient).unsafe(statement)
  }).pipe(
    Effect.provide(Layer.provideMerge(Migrations.layerFrom(directory), Database.layerUrl(Redacted.make(url), {})))
  )
  return url
})
