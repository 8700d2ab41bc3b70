import { Command } from "@effect/cli"
import { Effect, Layer, Logger, LogLevel } from "effect"
import { restore as readBackup, backup as writeBackup } from "../database/Backup.ts"
import { Migrations } from "../database/Migrations.ts"
import { CommandFailed } from "../ExitCode.ts"
import { LedgerAdmin } from "../services/ledger/LedgerAdmin.ts"
import { database, newDatabase } from "./CliServices.ts"
import * as Builders from "./CommandBuilders.ts"
import * as Inputs from "./Inputs.ts"
import * as Output from "./Output.ts"

export const migrate = Builders.make("migrate", "Apply pending database migrations.", {}, () =>
  Effect.map(
    Effect.flatMap(Migrations, ({ migrate }) => Logger.withMinimumLogLevel(migrate, LogLevel.Info)),
    ({ functions, names, summary }) => ({
      document: { applied: names, functions },
      text: summary === undefined ? "The database is up to date." : `${summary}.`
    })
  )
).pipe(Command.provide(database))

const sum = (rows: Readonly<Record<string, number>>) => Object.values(rows).reduce((total, count) => total + count, 0)

/** Only the JSON has the rows of each table. */
const counted = (fields: Output.Fields, tables: Readonly<Record<string, number>>) => ({
  ...Output.record(fields),
  document: { ...fields, tables }
})

export const backup = Builders.make(
  "backup",
  "Back up the database to a file. Safe while the gateway is running.",
  { file: Inputs.word("FILE", "a new file, such as NAME.backup.gz") },
  Effect.fnUntraced(function* ({ file }) {
    const { bytes, file: path, rows } = yield* writeBackup(file)
    return counted({ id: path, bytes, rows: sum(rows) }, rows)
  })
).pipe(Command.provide(database))

export const restore = Builders.make(
  "restore",
  "Restore a backup into an empty database, and verify the ledger.",
  { file: Inputs.word("FILE", "a file from gateway backup") },
  Effect.fnUntraced(function* ({ file }) {
    const { createdAt, rows } = yield* readBackup(file)
    const { entries, violations } = yield* Effect.flatMap(LedgerAdmin, ({ verify }) => verify)
    if (violations.length > 0) {
      return yield* new CommandFailed({
        message: "All rows were restored, but the ledger is broken. See gateway ledger verify."
      })
    }
    return counted({ id: file, created_at: createdAt, rows: sum(rows), entries }, rows)
  })
).pipe(Command.provide(Layer.provideMerge(LedgerAdmin.layer, newDatabase)))
