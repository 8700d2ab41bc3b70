/**
 * The program of `npm run schema`. It writes `migrations/schema.sql`, the generated functions and
 * `migrations/functions.json`.
 */

import { existsSync, readFileSync, writeFileSync } from "node:fs"
import { NodeRuntime } from "@effect/platform-node"
import { Console, Effect, Layer } from "effect"
import { Database } from "../../../src/database/Database.ts"
import { Migrations } from "../../../src/database/Migrations.ts"
import { directoryWith, temporaryDirectory } from "../../harness/temporary.ts"
import { describeFunctions, describeSchema, numberedFiles } from "./Schema.ts"
import { attributesOf, usageTotals } from "./UsageTotals.ts"

const file = "migrations/schema.sql"
const functions = "migrations/functions.json"

const program = Effect.gen(function* () {
  const numbered = yield* directoryWith(Object.fromEntries(numberedFiles()))
  const database = Database.layerEmbedded(yield* temporaryDirectory)
  const text = yield* Effect.gen(function* () {
    yield* Effect.flatMap(Migrations, ({ migrate }) => migrate)
    const connection = yield* Effect.flatMap(Database, ({ connect }) => connect)
    return yield* describeSchema(connection, existsSync(file) ? readFileSync(file, "utf8") : "")
  }).pipe(Effect.scoped, Effect.provide(Layer.provideMerge(Migrations.layerFrom(numbered), database)))
  writeFileSync(file, text)
  writeFileSync("migrations/functions/usage_totals.sql", usageTotals(attributesOf(text)))
  writeFileSync(functions, describeFunctions(readFileSync(functions, "utf8")))
  yield* Console.log(`Wrote ${file} and ${functions}.`)
}).pipe(Effect.scoped)

NodeRuntime.runMain(program)
