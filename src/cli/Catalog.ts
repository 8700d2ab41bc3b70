import { Args, Command, Options } from "@effect/cli"
import { Effect, Option } from "effect"
import * as Gateway from "../Gateway.ts"
import { readEnvironment, readSettings, sandboxMode } from "../Settings.ts"
import { marginRecord, modelRecord } from "../services/admin/CatalogRecord.ts"
import { readCatalogFile } from "../services/catalog/Catalog.ts"
import type { CatalogInvalid } from "../services/catalog/Problem.ts"
import { adaptersOf, Providers } from "../services/routing/Providers.ts"
import { ownFile } from "../services/runtime/OwnFiles.ts"
import { CommandFailed } from "./CommandFailed.ts"
import * as Inputs from "./Inputs.ts"
import { type Fields, present, print, table, toJson } from "./Output.ts"
import { type CatalogReport, check as checkCatalog } from "./prices/Check.ts"
import { type FeedReport, readFeed } from "./prices/Feed.ts"
import { reload } from "./Reload.ts"

const feedDocument = ({ drifts, entries, file, kind, matches, unmatched }: FeedReport): Fields => ({
  file,
  kind,
  entries,
  drifts: drifts.map(({ catalog, entry, feed, model, route, what }) => ({
    model,
    route: route ?? null,
    entry,
    what,
    catalog,
    feed
  })),
  matches: matches.map(({ route, ...match }) => ({ ...match, route: route ?? null })),
  unmatched
})

const documentOf = (file: string, { feed, losses, models }: CatalogReport): Fields => ({
  file,
  valid: true,
  losses,
  ...(feed && { feed: feedDocument(feed) }),
  data: models.map(modelRecord)
})

const stateOf = ({ callable, reason, sandboxed }: CatalogReport["models"][number]) =>
  callable ? (sandboxed ? "sandbox" : "on") : `off: ${reason ?? "no route can be called"}`

const feedTexts = (sold: number, { drifts, entries, file, kind, matches, unmatched }: FeedReport) => [
  table(
    matches.map(({ model, route = model, ...match }) => ({ route, ...match })),
    ["route", "entry", "compared", "drifted"],
    "The feed has no entry for any route or model."
  ),
  table(
    drifts.map(({ model, route = model, ...drift }) => ({ route, ...drift })),
    ["route", "what", "catalog", "feed", "entry"],
    "Nothing has drifted."
  ),
  ...(unmatched.length === 0 ? [] : [`Not in the feed: ${unmatched.join(", ")}`]),
  `${file} is ${kind}'s, with ${entries} entries: ${sold - unmatched.length} of ${sold} models are in it.`
]

const textOf = (file: string, { feed, losses, models }: CatalogReport): string => {
  const listed = models.map((model) => ({ id: model.id, surface: model.surface, state: stateOf(model) }))
  const margins = models.flatMap(({ routes }) =>
    routes.flatMap(({ id, margins: units }) => units.map((margin) => ({ route: id, ...marginRecord(margin) })))
  )
  const callable = models.filter((model) => model.callable).length
  const parts = [
    table(listed, ["id", "surface", "state"], "The catalog has no models."),
    table(
      margins,
      ["route", "unit", "price_usd", "cost_usd", "margin_usd", "margin_pct"],
      "No route says what its provider charges."
    ),
    ...(feed === undefined ? [] : feedTexts(models.length, feed)),
    ...(losses.length === 0 ? [] : [losses.map((loss) => `LOSS  ${loss}`).join("\n")]),
    `${file} is valid: ${models.length} models, ${callable} of them callable.`
  ]
  return parts.join("\n\n")
}

/** On stderr too, where editors look for problems. */
const reject = Effect.fnUntraced(function* (json: boolean, file: string, invalid: CatalogInvalid) {
  const problems = invalid.problems.map(({ file, key, line, message }) => ({ file, line, key, message }))
  if (json) yield* print(toJson({ file, valid: false, problems }))
  return yield* new CommandFailed({ message: invalid.message })
})

/** A catalog that sells below cost fails the check, although a start takes it. */
const solvent = ({ losses }: CatalogReport) =>
  losses.length === 0
    ? Effect.void
    : new CommandFailed({
        message: `${losses.length === 1 ? "One price is" : `${losses.length} prices are`} below what the provider charges.`
      })

const feedOption = Inputs.text("feed").pipe(
  Options.withDescription("a file with LiteLLM's or models.dev's price list to compare with"),
  Options.optional
)

const catalogFile = Args.text({ name: "FILE" }).pipe(
  Args.withDescription("a catalog; default: the setting CATALOG_FILE, else the built-in one"),
  Args.optional
)

const check = Command.make(
  "check",
  { file: catalogFile, feed: feedOption, json: Inputs.json },
  Effect.fnUntraced(
    function* ({ feed, file, json }) {
      const environment = yield* readEnvironment()
      const settings = yield* readSettings(environment)
      const path = Option.getOrElse(file, () => settings.catalogFile ?? ownFile("catalog.yaml"))
      const providers = yield* Effect.provide(Providers, Gateway.providers(settings))
      const prices = Option.isNone(feed) ? undefined : yield* readFeed(feed.value)
      const report = readCatalogFile(path).pipe(
        Effect.flatMap((source) =>
          checkCatalog({ source, environment, sandbox: sandboxMode(settings), adapters: adaptersOf(providers) }, prices)
        )
      )
      yield* report.pipe(
        Effect.flatMap((found) =>
          Effect.zipRight(present(json, documentOf(path, found), textOf(path, found)), solvent(found))
        ),
        Effect.catchTag("CatalogInvalid", (invalid) => reject(json, path, invalid))
      )
    },
    Effect.catchTag("FeedInvalid", ({ message }) => new CommandFailed({ message }))
  )
).pipe(
  Command.withDescription(
    "Validate a catalog: its mistakes by line, which models are off and why, margins; with --feed, what drifted."
  )
)

export const catalog = Inputs.group("catalog", "What the gateway sells.").pipe(Command.withSubcommands([check, reload]))
