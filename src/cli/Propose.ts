import { Options } from "@effect/cli"
import { Effect } from "effect"
import { nounFor, pluralize } from "../domain/Plural.ts"
import { CommandFailed } from "./CommandFailed.ts"
import * as Commands from "./Commands.ts"
import { ownCatalog, readCatalogAt } from "./Connection.ts"
import * as Inputs from "./Inputs.ts"
import type { Output } from "./Output.ts"
import { type Feed, readFeed } from "./prices/Feed.ts"
import type { Proposal } from "./prices/Proposal.ts"
import { type Proposals, propose as proposeModels } from "./prices/Proposals.ts"
import { proposalText } from "./prices/ProposalText.ts"
import { toLine } from "./prices/Yaml.ts"

const entryOf = ({ lines }: Proposal) =>
  Object.fromEntries(lines.flatMap(({ key, value }) => (value === undefined ? [] : [[key, value]])))

const remarksOf = ({ lines }: Proposal) =>
  lines.flatMap(({ comment, key }) => (comment === undefined ? [] : [`${key}: ${comment}`]))

const mostLines = 20
const mostNames = 3

const shorten = (names: ReadonlyArray<string>, most: number): string => {
  const rest = names.length - most
  return `${names.slice(0, most).map(toLine).join(", ")}${rest > 0 ? ` and ${rest} more` : ""}`
}

/** One line for each reason. */
const warningsOf = ({ skipped, unserved }: Proposals): ReadonlyArray<string> => {
  const byReason = new Map<string, Array<string>>()
  for (const { entry, why } of skipped) {
    const names = byReason.get(why)
    if (names === undefined) byReason.set(why, [entry])
    else names.push(entry)
  }
  const lines = [...byReason].map(
    ([why, names]) => `${shorten(names, mostNames)} ${nounFor(names.length, "is", "are")} skipped: ${toLine(why)}.`
  )
  const rest = lines.length - mostLines
  const vendors = shorten([...unserved.keys()], mostLines)
  return [
    ...lines.slice(0, mostLines),
    ...(rest > 0 ? [`More are skipped, for ${pluralize(rest, "other reason")}; --json lists all.`] : []),
    ...(unserved.size === 0
      ? []
      : [`Add a provider under the feed's name of it for models of these vendors: ${vendors}.`])
  ]
}

const outputOf = (proposals: Proposals, feed: Feed, catalog: string): Output => ({
  document: {
    file: feed.file,
    kind: feed.prices.kind,
    data: proposals.complete.map((one) => ({ entry: one.entry, model: entryOf(one), remarks: remarksOf(one) })),
    incomplete: proposals.incomplete.map((one) => ({
      entry: one.entry,
      missing: one.missing,
      model: entryOf(one),
      remarks: remarksOf(one)
    })),
    skipped: proposals.skipped,
    unserved: Object.fromEntries(proposals.unserved)
  },
  text: proposalText(proposals, feed, catalog),
  warnings: warningsOf(proposals)
})

export const propose = Commands.make(
  "propose",
  "Print catalog entries for models that a price list has and the catalog lacks, to review and add.",
  {
    feed: Inputs.text("feed").pipe(
      Options.withDescription("a file with LiteLLM's, models.dev's, OpenRouter's or genai-prices' price list")
    ),
    vendor: Inputs.optional(Inputs.text("vendor"), "only its models; the feed's name or a provider's; default: all")
  },
  Effect.fnUntraced(
    function* ({ feed: file, vendor }) {
      const catalog = yield* ownCatalog
      const feed = yield* readFeed(file)
      const options = yield* readCatalogAt(catalog)
      return outputOf(yield* proposeModels(options, feed, vendor), feed, catalog)
    },
    Effect.catchTags({
      CatalogInvalid: ({ message }) => new CommandFailed({ message }),
      FeedInvalid: ({ message }) => new CommandFailed({ message })
    })
  )
)
