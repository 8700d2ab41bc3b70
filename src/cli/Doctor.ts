import { Command } from "@effect/cli"
import { Effect } from "effect"
import { readEnvironment, readSettings } from "../Settings.ts"
import { Catalog } from "../services/catalog/Catalog.ts"
import * as Commands from "./Commands.ts"
import { quiet, readCatalogOptions } from "./Connection.ts"
import { checkDatabase } from "./doctor/DatabaseChecks.ts"
import { problem, report } from "./doctor/Finding.ts"
import {
  catalogProblems,
  checkCatalog,
  checkCredentials,
  checkDisk,
  checkPort,
  checkSettings
} from "./doctor/LocalChecks.ts"
import { checkMedia } from "./doctor/MediaChecks.ts"

const offer = Effect.flatMap(readCatalogOptions, Catalog.make).pipe(
  Effect.map((snapshot) => [...checkCatalog(snapshot), ...checkCredentials(snapshot)]),
  Effect.catchTag("CatalogInvalid", (invalid) => Effect.succeed(catalogProblems(invalid)))
)

const examine = Effect.gen(function* () {
  const settings = yield* Effect.flatMap(Effect.suspend(readEnvironment), readSettings)
  const port = yield* checkPort(settings)
  return [
    ...checkSettings(settings),
    ...(yield* offer),
    ...port.findings,
    yield* checkDisk(settings),
    ...(yield* checkDatabase(settings)),
    ...(yield* checkMedia(settings, port.running))
  ]
}).pipe(Effect.catchTag("SettingsInvalid", ({ message }) => Effect.succeed([problem("settings", message)])))

export const doctor = Commands.make(
  "doctor",
  "Find problems of settings, catalog, port, disk, database and media.",
  {},
  () => Effect.map(examine, report)
).pipe(Command.provide(quiet))
