import { Args, Command } from "@effect/cli"
import { Effect, Option } from "effect"
import { pluralize } from "../domain/Plural.ts"
import { marginRecord, modelRecord } from "../services/admin/CatalogRecord.ts"
import type { CatalogInvalid } from "../services/catalog/Problem.ts"
import { CommandFailed } from "./CommandFailed.ts"
import * as Commands from "./Commands.ts"
import { ownCatalog, readCatalogAt } from "./Connection.ts"
import * as Inputs from "./Inputs.ts"
import { type Fields, type Output, table } from "./Output.ts"
import { propose } from "./Propose.ts"
import { type CatalogReport, check as checkCatalog } from "./prices/Check.ts"
import { type FeedReport, readFeed } from "./prices/Feed.ts"
import { possessiveOf } from "./prices/FeedModel.ts"
import { reload } from "./Reload.ts"

const feedDocument = ({ drifts, entries, file, kind, matches, retired, unmatched }: FeedReport): Fields => ({
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
  unmatched,
  retired: retired.map(({ entry, route, on, ...model }) => ({
    ...model,
    route: route ?? null,
    entry: entry ?? null,
    on: on ?? null
  }))
})

const documentOf = (file: string, { feed, losses, models, warnings }: CatalogReport): Fields => ({
  file,
  valid: true,
  losses,
  warnings,
  ...(feed && { feed: feedDocument(feed) }),
  data: models.map(modelRecord)
})

const stateOf = ({ callable, reason, sandboxed }: CatalogReport["models"][number]) =>
  callable ? (sandboxed ? "sandbox" : "on") : `off: ${reason ?? "no route can be called"}`

const feedTexts = (sold: number, { drifts, entries, file, kind, matches, retired, unmatched }: FeedReport) => [
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
  ...(retired.length === 0
    ? []
    : [
        table(
          retired.map(({ model, route = model, ...rest }) => ({ route, ...rest })),
          ["route", "retired", "on", "why", "entry"],
          ""
        )
      ]),
  ...(unmatched.length === 0 ? [] : [`Not in the feed: ${unmatched.join(", ")}`]),
  `${file} is ${possessiveOf(kind)}, with ${pluralize(entries, "entry", "entries")}: it has ${sold - unmatched.length} of ${pluralize(sold, "model")}.`
]

const textOf = (file: string, { feed, losses, models, warnings }: CatalogReport): string => {
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
    ...(warnings.length === 0 ? [] : [warnings.map((warning) => `NOTE  ${warning}`).join("\n")]),
    ...(losses.length === 0 ? [] : [losses.map((loss) => `LOSS  ${loss}`).join("\n")]),
    `${file} is valid: ${pluralize(models.length, "model")}, ${callable} of them callable.`
  ]
  return parts.join("\n\n")
}

/** On stderr too, where editors look for problems. */
const rejection = (file: string, { message, problems }: CatalogInvalid): Output => ({
  document: {
    file,
    valid: false,
    problems: problems.map(({ file, key, line, message }) => ({ file, line, key, message }))
  },
  text: undefined,
  failure: message
})

/** A catalog that sells below cost fails the check, although a start takes it. */
const outputOf = (file: string, report: CatalogReport): Output => {
  const { length } = report.losses
  return {
    document: documentOf(file, report),
    text: textOf(file, report),
    failure:
      length === 0 ? undefined : `${pluralize(length, "price is", "prices are")} below what the provider charges.`
  }
}

const check = Commands.make(
  "check",
  "Validate a catalog: its mistakes by line, which models are off and why, margins; with --feed, what drifted or is retired.",
  {
    file: Inputs.word("FILE", "a catalog; default: the setting CATALOG_FILE, else the built-in one").pipe(
      Args.optional
    ),
    feed: Inputs.optional(
      Inputs.text("feed"),
      "a file with LiteLLM's, models.dev's, OpenRouter's or genai-prices' price list to compare with"
    )
  },
  Effect.fnUntraced(
    function* ({ feed, file }) {
      const path = Option.isSome(file) ? file.value : yield* ownCatalog
      const prices = feed === undefined ? undefined : yield* readFeed(feed)
      return yield* readCatalogAt(path).pipe(
        Effect.flatMap((options) => checkCatalog(options, prices)),
        Effect.map((report) => outputOf(path, report)),
        Effect.catchTag("CatalogInvalid", (invalid) => Effect.succeed(rejection(path, invalid)))
      )
    },
    Effect.catchTag("FeedInvalid", ({ message }) => new CommandFailed({ message }))
  )
)

export const catalog = Inputs.group("catalog", "What the gateway sells.").pipe(
  Command.withSubcommands([check, propose, reload])
)
