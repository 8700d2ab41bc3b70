import { Args, Command, Options } from "@effect/cli"
import { Effect, Option } from "effect"
import { nounFor, pluralize } from "../domain/Plural.ts"
import { awaitReload, requestReload } from "../services/admin/CatalogReload.ts"
import type { CatalogInvalid } from "../services/catalog/Problem.ts"
import { CommandFailed } from "./CommandFailed.ts"
import * as Commands from "./Commands.ts"
import { ownCatalog, readCatalogAt } from "./Connection.ts"
import * as Inputs from "./Inputs.ts"
import { type Fields, type Output, table } from "./Output.ts"
import { type CatalogReport, check as checkCatalog, type FeedReport } from "./prices/Check.ts"
import { feedName, readFeed } from "./prices/Feed.ts"
import { proposalText, propose as proposeModels, skipWarnings } from "./prices/Proposal.ts"

const documentOf = (file: string, { feed, losses, models, warnings }: CatalogReport): Fields => ({
  file,
  valid: true,
  losses,
  warnings,
  ...(feed && { feed: { ...feed, drifts: feed.drifts.map((drift) => ({ ...drift })) } }),
  data: models
})

const rowOf = ({ callable, id, reason, routes, sandboxed, surface }: CatalogReport["models"][number]): Fields => {
  const margins = routes.flatMap((route) => route.margins.flatMap(({ margin_pct }) => margin_pct ?? []))
  const state = callable ? (sandboxed ? "sandbox" : "on") : `off: ${reason ?? "no route can be called"}`
  return { id, surface, lowest_margin_pct: margins.length === 0 ? undefined : Math.min(...margins), state }
}

const feedTexts = (sold: number, { drifts, entries, file, unmatched }: FeedReport) => [
  table(
    drifts.map((drift) => ({ ...drift, route: drift.route ?? drift.model })),
    ["route", "what", "catalog", "feed", "entry"],
    "Nothing has drifted."
  ),
  unmatched.length === 0 ? "" : `Not in the feed: ${unmatched.join(", ")}`,
  `${file} has ${pluralize(entries, "entry", "entries")}, and ${sold - unmatched.length} of ${pluralize(sold, "model")}.`
]

const textOf = (file: string, { feed, losses, models, warnings }: CatalogReport): string => {
  const callable = models.filter((model) => model.callable).length
  const parts = [
    table(models.map(rowOf), ["id", "surface", "lowest_margin_pct", "state"], "The catalog has no models."),
    ...(feed === undefined ? [] : feedTexts(models.length, feed)),
    warnings.map((warning) => `NOTE  ${warning}`).join("\n"),
    losses.map((loss) => `LOSS  ${loss}`).join("\n"),
    `${file} is valid: ${pluralize(models.length, "model")}, ${callable} of them callable.`
  ]
  return parts.filter((part) => part !== "").join("\n\n")
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
  "Validate a catalog: its mistakes by line, which models are off and why, lowest margins; with --feed, what drifted or is retired. --json has all margins.",
  {
    file: Inputs.word("FILE", "a catalog; default: the setting CATALOG_FILE, else the built-in one").pipe(
      Args.optional
    ),
    feed: Inputs.optional(Inputs.text("feed"), `a price list to compare with: ${feedName}`)
  },
  Effect.fnUntraced(function* ({ feed, file }) {
    const path = Option.isSome(file) ? file.value : yield* ownCatalog
    const prices = feed === undefined ? undefined : yield* readFeed(feed)
    return yield* readCatalogAt(path).pipe(
      Effect.flatMap((options) => checkCatalog(options, prices)),
      Effect.map((report) => outputOf(path, report)),
      Effect.catchTag("CatalogInvalid", (invalid) => Effect.succeed(rejection(path, invalid)))
    )
  })
)

const propose = Commands.make(
  "propose",
  "Print catalog entries for models that a price list has and the catalog lacks, to review and add.",
  {
    feed: Inputs.text("feed").pipe(Options.withDescription(`a price list: ${feedName}`)),
    vendor: Inputs.optional(Inputs.text("vendor"), "only its models; the feed's name or a provider's; default: all")
  },
  Effect.fnUntraced(
    function* ({ feed: file, vendor }) {
      const path = yield* ownCatalog
      const feed = yield* readFeed(file)
      const proposals = yield* proposeModels(yield* readCatalogAt(path), feed, vendor)
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

const reload = Commands.command(
  "reload",
  "Let every instance read its catalog and its credentials again; one that refuses goes on with what it had.",
  {},
  Effect.fnUntraced(function* () {
    const { record } = yield* requestReload
    const rows = yield* awaitReload(record.generation)
    const failed = rows.filter(({ state }) => state !== "reloaded").length
    const problems = new Set(rows.flatMap(({ problem }) => problem ?? []))
    const fingerprints = new Set(rows.flatMap(({ fingerprint }) => fingerprint ?? []))
    const text = [
      table(
        rows,
        ["id", "host", "pid", "state", "fingerprint", "models"],
        "No gateway is running; each reads its catalog when it starts."
      ),
      ...problems,
      ...(fingerprints.size > 1 ? ["The instances serve different catalogs."] : [])
    ].join("\n\n")
    const failure = `${failed} of ${pluralize(rows.length, "instance")} ${nounFor(failed, "keeps its", "keep their")} previous catalog.`
    return { document: { data: rows }, text, failure: failed === 0 ? undefined : failure }
  })
)

export const catalog = Inputs.group("catalog", "What the gateway sells.").pipe(
  Command.withSubcommands([check, propose, reload])
)
