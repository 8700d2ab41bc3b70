import { Command, Options } from "@effect/cli"
import { Effect, Stream } from "effect"
import { pastForms, pastMoment } from "../domain/Moment.ts"
import { pluralize } from "../domain/Plural.ts"
import { Catalog, type CatalogSnapshot } from "../services/catalog/Catalog.ts"
import { reconcileBooks } from "../services/reconcile/BookReconciliation.ts"
import { type ReconciledAccount, rowsKeptFrom } from "../services/reconcile/OwnBooks.ts"
import { ProviderBooks } from "../services/reconcile/ProviderBooks.ts"
import { marginMillis } from "../services/reconcile/RequestMatcher.ts"
import { CommandFailed } from "./CommandFailed.ts"
import { operator, readCatalogOptions } from "./Connection.ts"
import * as Inputs from "./Inputs.ts"
import * as Output from "./Output.ts"
import { readWholePeriod } from "./reconcile/Period.ts"
import { Report } from "./reconcile/Report.ts"
import { columnForms, openBooks, parseBaseUrl, parseColumns } from "./reconcile/Source.ts"

const fail = (message: string) => new CommandFailed({ message, exitCode: 2 })

const millionthsInPercent = 10_000

const parseTolerance = (text: string): number | undefined => {
  const [, number] = /^(\d{1,3}(?:\.\d{1,4})?)\s*%?$/.exec(text.trim()) ?? []
  const percent = number === undefined ? Number.NaN : Number(number)
  return percent <= 100 ? Math.round(percent * millionthsInPercent) : undefined
}

/** Providers that call with one credential share one account, and so its books. */
const accountOf = ({ offers, providers }: CatalogSnapshot, provider: string) => {
  const found = providers.find(({ account }) => account.name === provider)
  if (found === undefined) return undefined
  const sharing = providers.filter(
    ({ account, variable }) => variable !== undefined && variable === found.variable && account.baseUrl !== undefined
  )
  const names = new Set([provider, ...sharing.map(({ account }) => account.name)])
  const routes = offers.flatMap(
    ({ model }): ReadonlyArray<{ id: string; model: string; provider: { name: string } }> => [...model.routes]
  )
  const models = new Map(routes.flatMap((route) => (names.has(route.provider.name) ? [[route.id, route.model]] : [])))
  return { account: found.account, own: { providers: names, models } satisfies ReconciledAccount }
}

const longMillis = 45 * 86_400_000

const showProgress = (unit: string, done: number, all: number) =>
  Effect.sync(() =>
    process.stderr.write(`gateway: by ${unit}: ${done} of ${pluralize(all, "part is", "parts are")} compared\n`)
  )

const percent = (millionths: number) => `${millionths / millionthsInPercent} %`

export const reconcile = Command.make(
  "reconcile",
  {
    provider: Inputs.word("PROVIDER", "a provider of the catalog, as in gateway reconcile openai --since 7d"),
    since: Inputs.option("since", pastForms, pastMoment).pipe(
      Options.withDescription(
        `the start: ${pastForms}; a time must begin a UTC day, or an hour to compare by request id`
      )
    ),
    until: Inputs.optional(
      Inputs.option("until", pastForms, pastMoment),
      "the end, exclusive; default: the end of the last whole day or hour"
    ),
    file: Inputs.optional(Inputs.text("file"), "a CSV file with the provider's books"),
    columns: Inputs.optional(
      Inputs.option("columns", columnForms, parseColumns),
      "what the file's columns hold: time=…,model=…,usd=… and, where it has them, request_id, prompt_tokens, completion_tokens"
    ),
    tolerance: Inputs.optional(
      Inputs.option("tolerance", "a percentage from 0 to 100", parseTolerance),
      "what may differ, in percent of the larger amount: exit code 1 where more does; default: 1%"
    ),
    baseUrl: Inputs.optional(
      Inputs.option("base-url", "an https URL, or http on this machine", parseBaseUrl),
      "where the provider's books are read; default: the vendor's"
    ),
    csv: Inputs.csv,
    json: Inputs.json
  },
  Effect.fnUntraced(
    function* ({ baseUrl, columns, csv, file, json, provider, since, tolerance = millionthsInPercent, until }) {
      if (csv && json) return yield* fail("--csv does not go with --json.")
      const found = accountOf(yield* Effect.flatMap(readCatalogOptions, Catalog.make), provider)
      if (found === undefined) return yield* fail(`The catalog has no provider ${provider}.`)
      const books = yield* openBooks(found.account, { file, columns, baseUrl })
      const range = yield* readWholePeriod({ since, until }, books)
      const kept = yield* rowsKeptFrom
      if (books.some(({ unit }) => unit === "request") && kept !== null && kept.getTime() > range.from - marginMillis) {
        return yield* fail(
          `Requests of before ${kept.toISOString()} are no longer in the log, and calls are compared by their ids: begin later.`
        )
      }
      const report = new Report(json ? "json" : csv ? "csv" : "table", {
        provider,
        since: new Date(range.from),
        until: new Date(range.to),
        tolerance: tolerance / (100 * millionthsInPercent)
      })
      const print = (texts: ReadonlyArray<string>) => Effect.forEach(texts, Output.print, { discard: true })
      const isLong = range.to - range.from > longMillis
      const rows = reconcileBooks({
        account: found.own,
        range,
        tolerance,
        onOutside: (outside) => Effect.sync(() => report.addOutside(outside)),
        onStep: ({ unit }, done, all) => (isLong ? showProgress(unit, done, all) : Effect.void)
      })
      yield* Stream.runForEach(rows, (some) => Effect.suspend(() => print(report.add(some)))).pipe(
        Effect.provideService(ProviderBooks, { books })
      )
      yield* print(report.end())
      const { compared, differing, outside } = report
      if (csv && outside !== undefined) yield* Effect.sync(() => process.stderr.write(`gateway: ${outside}\n`))
      if (compared === 0 && outside !== undefined) return yield* fail(`${file} has no row in this period.`)
      if (differing === 0) return
      const message = `${pluralize(differing, "row differs", "rows differ")} by more than ${percent(tolerance)}.`
      return yield* new CommandFailed({ message })
    },
    Effect.catchTag("BooksUnreadable", ({ message }) => fail(message)),
    Effect.scoped
  )
).pipe(Command.withDescription("Compare a provider's own books with ours."), Command.provide(operator))
