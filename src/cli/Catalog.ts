import { Args, Command } from "@effect/cli"
import { Effect, Option } from "effect"
import * as Gateway from "../Gateway.ts"
import { readEnvironment, readSettings, sandboxMode } from "../Settings.ts"
import { readCatalogFile } from "../services/Catalog.ts"
import { type CatalogReport, check as checkCatalog } from "../services/catalog/Check.ts"
import type { CatalogInvalid } from "../services/catalog/Problem.ts"
import { ownFile } from "../services/Installation.ts"
import { adaptersOf, Providers } from "../services/Providers.ts"
import { CommandFailed } from "./CommandFailed.ts"
import * as Inputs from "./Inputs.ts"
import { type Fields, present, print, table, toJson } from "./Output.ts"

const percent = (price: bigint, cost: bigint) => (price === 0n ? null : Number(((price - cost) * 1000n) / price) / 10)

const documentOf = (file: string, { losses, models }: CatalogReport): Fields => ({
  file,
  valid: true,
  losses,
  data: models.map((model) => ({
    id: model.id,
    surface: model.surface,
    callable: model.callable,
    sandboxed: model.sandboxed,
    reason: model.reason ?? null,
    routes: model.routes.map((route) => ({
      id: route.id,
      provider: route.provider,
      preference: route.preference,
      weight: route.weight,
      blocked: route.blocked ?? null,
      margins: route.margins.map(({ cost, price, unit }) => ({
        unit,
        price_usd: price,
        cost_usd: cost,
        margin_usd: price - cost,
        margin_pct: percent(price, cost)
      }))
    }))
  }))
})

const stateOf = ({ callable, reason, sandboxed }: CatalogReport["models"][number]) =>
  callable ? (sandboxed ? "sandbox" : "on") : `off: ${reason ?? "no route can be called"}`

const textOf = (file: string, { losses, models }: CatalogReport): string => {
  const listed = models.map((model) => ({ id: model.id, surface: model.surface, state: stateOf(model) }))
  const margins = models.flatMap(({ routes }) =>
    routes.flatMap(({ id, margins: units }) =>
      units.map(({ cost, price, unit }) => ({
        route: id,
        unit,
        price_usd: price,
        cost_usd: cost,
        margin_usd: price - cost,
        margin_pct: percent(price, cost)
      }))
    )
  )
  const callable = models.filter((model) => model.callable).length
  const parts = [
    table(listed, ["id", "surface", "state"], "The catalog has no models."),
    table(
      margins,
      ["route", "unit", "price_usd", "cost_usd", "margin_usd", "margin_pct"],
      "No route says what its provider charges."
    ),
    ...(losses.length === 0 ? [] : [losses.map((loss) => `LOSS  ${loss}`).join("\n")]),
    `${file} is valid: ${models.length} models, ${callable} of them callable.`
  ]
  return parts.join("\n\n")
}

/** The problems are the answer; on stderr too, where people and editors look for them. */
const reject = Effect.fnUntraced(function* (json: boolean, file: string, invalid: CatalogInvalid) {
  const problems = invalid.problems.map(({ file, key, line, message }) => ({ file, line, key, message }))
  if (json) yield* print(toJson({ file, valid: false, problems }))
  return yield* new CommandFailed({ message: invalid.message })
})

const check = Command.make(
  "check",
  { file: Args.text({ name: "FILE" }).pipe(Args.optional), json: Inputs.json },
  Effect.fnUntraced(function* ({ file, json }) {
    const environment = yield* readEnvironment()
    const settings = yield* readSettings(environment)
    const path = Option.getOrElse(file, () => settings.catalogFile ?? ownFile("catalog.yaml"))
    const providers = yield* Effect.provide(Providers, Gateway.providers(settings))
    const report = readCatalogFile(path).pipe(
      Effect.flatMap((source) =>
        checkCatalog({ source, environment, sandbox: sandboxMode(settings), adapters: adaptersOf(providers) })
      )
    )
    yield* report.pipe(
      Effect.flatMap((found) => present(json, documentOf(path, found), textOf(path, found))),
      Effect.catchTag("CatalogInvalid", (invalid) => reject(json, path, invalid))
    )
  })
).pipe(Command.withDescription("Validate a catalog: its mistakes by line, which models are off and why, margins."))

export const catalog = Inputs.group("catalog", "What the gateway sells.").pipe(Command.withSubcommands([check]))
