import { Command } from "@effect/cli"
import { Effect, Logger, LogLevel } from "effect"
import { Migrations } from "../database/Migrations.ts"
import * as Commands from "./Commands.ts"
import { database } from "./Connection.ts"

export const migrate = Commands.make("migrate", "Bring the database up to date.", {}, () =>
  Effect.map(
    Effect.flatMap(Migrations, ({ migrate }) => Logger.withMinimumLogLevel(migrate, LogLevel.Info)),
    ({ names, summary }) => ({
      document: { applied: names },
      text: summary === undefined ? "The database is up to date." : `${summary}.`
    })
  )
).pipe(Command.provide(database))
