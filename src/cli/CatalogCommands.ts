import { Args, Command, Options } from "@effect/cli"
import { Effect, Option } from "effect"
import { limitTo, nounFor, pluralize } from "../domain/Wording.ts"
import { CommandFailed } from "../ExitCode.ts"
import { awaitReload, requestReload } from "../services/admin/CatalogRecord.ts"
import { settings } from "../services/admin/Organizations.ts"
import type { CatalogInvalid } from "../services/catalog/CatalogSource.ts"
import { ownCatalog, readCatalogInput } from "./CliServices.ts"
import * as Builders from "./CommandBuilders.ts"
import * as Inputs from "./Inputs.ts"
import { type Fields, type Output, table } from "./Output.ts"
import { type CatalogReport, check as checkCatalog, type FeedReport } from "./prices/Check.ts"
import { feedName, readFeed } from "./prices/Feed.ts"
import { proposalText, propose as proposeModels, skipWarnings } from "./prices/Proposal.ts"

const documentOf = (file: string, { discount, feed, losses, models, warnings }: CatalogReport): Fields => ({
  file,
  valid: true,
  discount_percent: discount,
  losses,
  warnings,
  ...(feed && { feed: { ...feed, drifts: feed.drifts.map((drift) => ({ ...drift })) } }),
  data: models
})

const rowOf = ({
  callable,
  id,
  markup_pct,
  reason,
  routes,
  sandboxed,
  surface
}: CatalogReport["models"][number]): Fields => {
  const margins = routes.flatMap((route) => route.margins.flatMap(({ margin_pct }) => margin_pct ?? []))
  const state = callable ? (sandboxed ? "sandbox" : "on") : `off: ${reason ?? "no route can be called"}`
  return { id, surface, markup_pct, lowest_margin_pct: margins.length === 0 ? undefined : Math.min(...margins), state }
}

const feedTexts = (modelCount: number, { drifts, entries, file, unmatched }: FeedReport) => [
  table(
    drifts.map((drift) => ({ ...drift, route: drift.route ?? drift.model })),
    ["route", "what", "catalog", "feed", "entry"],
    "No price differs."
  ),
  unmatched.length === 0 ? "" : `Not in the feed: ${unmatched.join(", ")}`,
  `${file} has ${pluralize(entries, "entry", "entries")} and has prices for ${modelCount - unmatched.length} of ${pluralize(modelCount, "model")}.`
]

const maxLines = 20

/** Returns lines that begin with the label. Omits those beyond the maximum, which the JSON has. */
const labelLines = (label: string, texts: ReadonlyArray<string>): string =>
  limitTo(texts, maxLines, ". Use --json for all.")
    .map((text) => `${label}  ${text}`)
    .join("\n")

const textOf = (file: string, { feed, models, summary }: CatalogReport): string => {
  const callableCount = models.filter((model) => model.callable).length
  const hasMarkup = models.some(({ markup_pct }) => markup_pct !== 0)
  const columns = ["id", "surface", ...(hasMarkup ? ["markup_pct"] : []), "lowest_margin_pct", "state"]
  const parts = [
    table(models.map(rowOf), columns, "The catalog has no models."),
    ...(feed === undefined ? [] : feedTexts(models.length, feed)),
    labelLines("NOTE", summary.warnings),
    labelLines("LOSS", summary.losses),
    `${file} is valid: ${pluralize(models.length, "model")}, ${callableCount} of them callable.`,
    hasMarkup ? "" : "To sell above these prices, add a markup in percent at the top of the catalog, such as markup: 20"
  ]
  return parts.filter((part) => part !== "").join("\n\n")
}

/** The failure prints the problems to stderr, where editors read them. */
const rejection = (file: string, { message, problems }: CatalogInvalid): Output => ({
  document: {
    file,
    valid: false,
    problems: problems.map(({ file, key, line, message }) => ({ file, line, key, message }))
  },
  text: undefined,
  failure: message
})

/** A price below cost fails the check, although a gateway starts with such a catalog. */
const outputOf = (file: string, report: CatalogReport): Output => {
  const lossCount = report.losses.length
  return {
    document: documentOf(file, report),
    text: textOf(file, report),
    failure:
      lossCount === 0 ? undefined : `${pluralize(lossCount, "price is", "prices are")} below the provider's cost.`
  }
}

const check = Builders.make(
  "check",
  "Validate a catalog. Print errors by line, unavailable models and minimum margins. With --feed, also report price differences and retired models; with --json, all margins.",
  {
    file: Inputs.word("FILE", "a catalog file; default: the setting CATALOG_FILE, or the built-in catalog").pipe(
      Args.optional
    ),
    feed: Inputs.optional(Inputs.text("feed"), `compare with this price list, a file in the format of ${feedName}`),
    discount: Inputs.inputOption("discount", settings.discount_percent).pipe(
      Options.withDescription("calculate margins at this discount in percent, and warn about prices below cost"),
      Options.optional,
      Options.map(Option.getOrUndefined)
    )
  },
  Effect.fnUntraced(function* ({ discount, feed, file }) {
    const path = Option.isSome(file) ? file.value : yield* ownCatalog
    const prices = feed === undefined ? undefined : yield* readFeed(feed)
    return yield* readCatalogInput(path).pipe(
      Effect.flatMap((options) => checkCatalog(options, { feed: prices, discount })),
      Effect.map((report) => outputOf(path, report)),
      Effect.catchTag("CatalogInvalid", (invalid) => Effect.succeed(rejection(path, invalid)))
    )
  })
)

const propose = Builders.make(
  "propose",
  "Print draft catalog entries for models that are in a price list and not in the catalog.",
  {
    feed: Inputs.text("feed").pipe(Options.withDescription(`a price list in the format of ${feedName}`)),
    vendor: Inputs.optional(
      Inputs.text("vendor"),
      "only models of this vendor, named as in the feed or as a provider in the catalog; default: all"
    )
  },
  Effect.fnUntraced(
    function* ({ feed: file, vendor }) {
      const path = yield* ownCatalog
      const feed = yield* readFeed(file)
      const proposals = yield* proposeModels(yield* readCatalogInput(path), feed, vendor)
      return {
        document: {
          file,
          data: proposals.proposed.map(({ entry, model }) => ({ entry, model })),
          skipped: proposals.skipped
        },
        text: proposalText(proposals, feed, path),
        warnings: skipWarnings(proposals)
      }
    },
    Effect.catchTag("CatalogInvalid", ({ message }) => new CommandFailed({ message }))
  )
)

const reload = Builders.command(
  "reload",
  "Reload the catalog and credentials on every instance. An instance that rejects the new catalog keeps its previous one.",
  {},
  Effect.fnUntraced(function* () {
    const { record } = yield* requestReload
    const rows = yield* awaitReload(record.generation)
    const failedCount = rows.filter(({ state }) => state !== "reloaded").length
    const problems = new Set(rows.flatMap(({ problem }) => problem ?? []))
    const fingerprints = new Set(rows.flatMap(({ fingerprint }) => fingerprint ?? []))
    const text = [
      table(
        rows,
        ["host", "pid", "state", "fingerprint", "models", "id"],
        "No gateway is running. A gateway reads its catalog when it starts."
      ),
      ...problems,
      ...(fingerprints.size > 1 ? ["The instances serve different catalogs."] : [])
    ].join("\n\n")
    const failure = `${failedCount} of ${pluralize(rows.length, "instance")} ${nounFor(failedCount, "keeps its", "keep their")} previous catalog.`
    return { document: { data: rows }, text, failure: failedCount === 0 ? undefined : failure }
  })
)

export const catalog = Inputs.group("catalog", "Manage the model catalog.").pipe(
  Command.withSubcommands([check, propose, reload])
)
