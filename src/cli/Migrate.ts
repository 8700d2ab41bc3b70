import { Command } from "@effect/cli"
import { Effect } from "effect"
import { Migrations } from "../database/Migrations.ts"
import * as Commands from "./Commands.ts"
import { database } from "./Connection.ts"

export const migrate = Commands.make("migrate", "Bring the database up to date.", {}, () =>
  Effect.map(
    Effect.flatMap(Migrations, ({ migrate }) => migrate),
    ({ names, summary }) => ({
      document: { applied: names },
      text: summary === undefined ? "The database is up to date." : `${summary}.`
    })
  )
).pipe(Command.provide(database))
