import { Command } from "@effect/cli"
import { Effect } from "effect"
import { Migrations } from "../database/Migrations.ts"
import { database } from "./Connection.ts"
import * as Inputs from "./Inputs.ts"
import { present } from "./Output.ts"

export const migrate = Command.make(
  "migrate",
  { json: Inputs.json },
  Effect.fnUntraced(function* ({ json }) {
    const applied = yield* Effect.flatMap(Migrations, (migrations) => migrations.migrate)
    const text =
      applied.length === 0 ? "The database is up to date." : applied.map((name) => `Applied ${name}`).join("\n")
    yield* present(json, { applied }, text)
  })
).pipe(Command.withDescription("Bring the database up to date."), Command.provide(database))
