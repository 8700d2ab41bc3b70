/** `oldUrl`: a database as an earlier version of the program left it. */

import { readdirSync, readFileSync } from "node:fs"
import path from "node:path"
import { SqlClient } from "@effect/sql/SqlClient"
import { Effect, Layer, Redacted } from "effect"
import { Database } from "../../../src/database/Database.ts"
import { Migrations } from "../../../src/database/Migrations.ts"
import { directoryWith } from "../temporary.ts"
import { emptyUrl } from "./Postgres.ts"

const files = readdirSync("migrations").toSorted()
const old = files.filter((file) => file < "0045")

/** The files of the migrations that the database lacks. */
export const outstanding: ReadonlyArray<string> = files.slice(old.length)

/** The URL of a database at version 0044, changed by `statement`. */
export const oldUrl = Effect.fnUntraced(function* (statement = "SELECT 1") {
  const url = yield* emptyUrl
  const texts = old.map((file) => [file, readFileSync(path.join("migrations", file), "utf8")])
  const directory = yield* directoryWith(Object.fromEntries(texts))
  yield* Effect.gen(function* () {
    const { migrate } = yield* Migrations
    yield* migrate
    yield* (yield* SqlClient).unsafe(statement)
  }).pipe(
    Effect.provide(Layer.provideMerge(Migrations.layerFrom(directory), Database.layerUrl(Redacted.make(url), {})))
  )
  return url
})
