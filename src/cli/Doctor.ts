import { Command } from "@effect/cli"
import { Effect } from "effect"
import { Catalog } from "../services/catalog/Catalog.ts"
import * as Commands from "./Commands.ts"
import { quiet, readCatalogOptions, settingsOfRunning } from "./Connection.ts"
import { checkDatabase } from "./doctor/DatabaseChecks.ts"
import { problem, report } from "./doctor/Finding.ts"
import {
  catalogProblems,
  checkCatalog,
  checkCredentials,
  checkDisk,
  checkPort,
  checkPrices,
  checkSettings
} from "./doctor/LocalChecks.ts"
import { checkMedia } from "./doctor/MediaChecks.ts"
import { check } from "./prices/Check.ts"

const offer = Effect.flatMap(readCatalogOptions, (options) =>
  Effect.all({ snapshot: Catalog.make(options), report: check(options) })
).pipe(
  Effect.map(({ report, snapshot }) => [...checkCatalog(snapshot), checkPrices(report), ...checkCredentials(snapshot)]),
  Effect.catchTag("CatalogInvalid", (invalid) => Effect.succeed(catalogProblems(invalid)))
)

const examine = Effect.gen(function* () {
  const { running, settings: read } = yield* settingsOfRunning
  const port = yield* checkPort(read, running)
  return [
    ...checkSettings(read),
    ...(yield* offer),
    port.finding,
    yield* checkDisk(read),
    ...(yield* checkDatabase(read)),
    ...(yield* checkMedia(read, port.isRunning))
  ]
}).pipe(Effect.catchTag("SettingsInvalid", ({ message }) => Effect.succeed([problem("settings", message)])))

export const doctor = Commands.make("doctor", "Find problems, from the settings to routes and webhooks.", {}, () =>
  Effect.map(examine, report)
).pipe(Command.provide(quiet))
