import { Command } from "@effect/cli"
import { Effect, Layer, Logger, LogLevel } from "effect"
import { restore as readBackup, backup as writeBackup } from "../database/Backup.ts"
import { Migrations } from "../database/Migrations.ts"
import { LedgerAdmin } from "../services/ledger/LedgerAdmin.ts"
import { CommandFailed } from "./CommandFailed.ts"
import * as Commands from "./Commands.ts"
import { database, newDatabase } from "./Connection.ts"
import * as Inputs from "./Inputs.ts"
import * as Output from "./Output.ts"

export const migrate = Commands.make("migrate", "Bring the database up to date.", {}, () =>
  Effect.map(
    Effect.flatMap(Migrations, ({ migrate }) => Logger.withMinimumLogLevel(migrate, LogLevel.Info)),
    ({ names, summary }) => ({
      document: { applied: names },
      text: summary === undefined ? "The database is up to date." : `${summary}.`
    })
  )
).pipe(Command.provide(database))

const sum = (rows: Readonly<Record<string, number>>) => Object.values(rows).reduce((total, one) => total + one, 0)

export const backup = Commands.make(
  "backup",
  "Write a consistent copy of the database to a file, in use too.",
  { file: Inputs.word("FILE", "a file that does not exist yet; such as NAME.backup.gz") },
  Effect.fnUntraced(function* ({ file }) {
    const { bytes, file: path, rows } = yield* writeBackup(file)
    return Output.record({ id: path, bytes, rows: sum(rows), tables: rows })
  })
).pipe(Command.provide(database))

export const restore = Commands.make(
  "restore",
  "Fill an empty database from a backup, and verify its ledger.",
  { file: Inputs.word("FILE", "a file that gateway backup has written") },
  Effect.fnUntraced(function* ({ file }) {
    const { createdAt, rows } = yield* readBackup(file)
    const { entries, violations } = yield* Effect.flatMap(LedgerAdmin, ({ verify }) => verify)
    if (violations.length > 0) {
      return yield* new CommandFailed({
        message: "All rows are back, but the ledger is broken: see gateway ledger verify."
      })
    }
    return Output.record({ id: file, created_at: createdAt, rows: sum(rows), entries, tables: rows })
  })
).pipe(Command.provide(Layer.provideMerge(LedgerAdmin.layer, newDatabase)))
