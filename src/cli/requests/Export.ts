import { Effect } from "effect"
import { RequestLog, type RequestQuery, type RequestRow } from "../../services/telemetry/RequestLog.ts"
import * as Output from "../Output.ts"
import { recordOf } from "./Record.ts"

const perPage = 1_000

const columns = [
  "id",
  "request_id",
  "at",
  "status",
  "code",
  "org",
  "key_id",
  "address",
  "user_agent",
  "surface",
  "model",
  "stream",
  "route",
  "preferred_route",
  "provider_request_id",
  "tries",
  "prompt_tokens",
  "completion_tokens",
  "cached_tokens",
  "cache_write_tokens",
  "cache_write_1h_tokens",
  "reasoning_tokens",
  "web_searches",
  "notes",
  "charge_usd",
  "cost_usd",
  "first_byte_ms",
  "total_ms"
]

const csvLine = (row: RequestRow) =>
  Output.csvLine(
    {
      ...recordOf(row),
      tries: row.attempts.length,
      prompt_tokens: row.promptTokens,
      completion_tokens: row.completionTokens,
      cached_tokens: row.cachedTokens,
      cache_write_tokens: row.cacheWriteTokens,
      cache_write_1h_tokens: row.cacheWriteHourTokens,
      reasoning_tokens: row.reasoningTokens,
      web_searches: row.webSearches
    },
    columns
  )

const jsonLine = (row: RequestRow) => Output.toJson(recordOf(row), 0)

const formats = {
  csv: { head: columns.join(","), line: csvLine, between: "\n", tail: "" },
  json: { head: '{"data":[', line: jsonLine, between: ",\n", tail: "]}" }
}

/** Page by page, so that memory stays the same however many rows there are. */
export const exportAll = Effect.fnUntraced(function* (
  format: keyof typeof formats,
  query: Omit<RequestQuery, "limit">,
  limit: number
) {
  const { list } = yield* RequestLog
  const { between, head, line, tail } = formats[format]
  yield* Output.print(head)
  let last: string | undefined
  for (let left = limit; left > 0; ) {
    const size = Math.min(left, perPage)
    const rows = yield* list({ ...query, ...(last !== undefined && { after: last }), limit: size })
    left -= rows.length
    if (rows.length > 0) {
      const isFirst = last === undefined
      yield* Output.print(`${isFirst || format === "csv" ? "" : ","}${rows.map(line).join(between)}`)
    }
    last = rows.at(-1)?.id
    if (rows.length < size) break
  }
  if (tail !== "") yield* Output.print(tail)
})
