import { Effect } from "effect"
import type { Book, BookEntry } from "../services/reconcile/ProviderBooks.ts"
import { type Access, booksClient } from "./BooksClient.ts"
import { Reader } from "./Values.ts"

const vendor = "xAI"
const day = 86_400_000

const toText = (at: number) => new Date(at).toISOString().slice(0, 19).replace("T", " ")

/** A description names its model last: `Chat grok-4.5`. */
const modelIn = (description: string): string => /(\S*grok\S*)/i.exec(description)?.[1] ?? description

/** `POST /v1/billing/teams/{team}/usage`: USD by day and description; the key tells its team. */
export const xai = (access: Access): ReadonlyArray<Book> => {
  const read = new Reader(vendor)
  const { ask, refuse } = booksClient(vendor, access, (key) => ({ authorization: `Bearer ${key}` }))

  const readTeam = Effect.gen(function* () {
    const path = "/auth/management-keys/validation"
    const key = yield* Effect.flatMap(ask({ path }), (answer) => read.record(answer, path))
    return yield* read.text(key["teamId"] ?? key["scopeId"], "teamId")
  })

  return [
    {
      unit: "day",
      states: ["usd"],
      finalAfter: day,
      read: ({ from, to }) =>
        Effect.gen(function* () {
          const path = `/v1/billing/teams/${encodeURIComponent(yield* readTeam)}/usage`
          const analyticsRequest = {
            timeRange: { startTime: toText(from), endTime: toText(to), timezone: "Etc/GMT" },
            timeUnit: "TIME_UNIT_DAY",
            values: [{ name: "usd", aggregation: "AGGREGATION_SUM" }],
            groupBy: ["description"],
            filters: []
          }
          const answer = yield* Effect.flatMap(ask({ path, body: { analyticsRequest } }), (answer) =>
            read.record(answer, "usage")
          )
          if (answer["limitReached"] === true) {
            return yield* refuse("the usage is longer than it lists at once: compare a shorter time.")
          }
          const entries: Array<BookEntry> = []
          for (const one of yield* read.list(answer["timeSeries"], "timeSeries")) {
            const series = yield* read.record(one, "timeSeries")
            const [label] = yield* read.list(series["groupLabels"] ?? series["group"], "groupLabels")
            const description = yield* read.text(label, "groupLabels")
            for (const point of yield* read.list(series["dataPoints"], "dataPoints")) {
              const { timestamp, values } = yield* read.record(point, "dataPoints")
              const at = yield* read.time(timestamp, "timestamp")
              const [value] = yield* read.list(values, "values")
              const usd = yield* read.usd(value, "values")
              if (at >= from && at < to) entries.push({ key: description, at, model: modelIn(description), usd })
            }
          }
          return entries
        })
    }
  ]
}
