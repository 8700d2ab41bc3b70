import { Clock, Effect, ParseResult, Schema } from "effect"
import type { ProviderAccount } from "../domain/Model.ts"
import { instant } from "../domain/Moment.ts"
import type { InvoiceEntry, InvoiceSource } from "../services/reconcile/ProviderInvoices.ts"
import { type Access, type InvoiceClient, type InvoiceQuery, makeInvoiceClient } from "./InvoiceClient.ts"

const maxNano = 10n ** 18n
const maxCount = 1e15

const scientific = /^([+-]?)(\d{1,40})(?:\.(\d{0,40}))?(?:[eE]([+-]?\d{1,3}))?$/

/**
 * Converts a decimal number, or its text, from units of 10^-`decimals` USD to nano-USD. Rounds halves away from zero. Returns
 * undefined for a value that is not a plausible amount.
 */
export const toNano = (value: unknown, decimals = 0): bigint | undefined => {
  const text = typeof value === "number" ? String(value) : typeof value === "string" ? value.trim() : ""
  const [, sign = "", integer, fraction = "", exponent = "0"] = scientific.exec(text) ?? []
  if (integer === undefined) return undefined
  const shift = 9 + Number(exponent) - decimals - fraction.length
  if (shift > 30) return undefined
  const digits = BigInt(integer + fraction)
  const divisor = 10n ** BigInt(Math.max(0, -shift))
  const nano = shift >= 0 ? digits * 10n ** BigInt(shift) : (digits + divisor / 2n) / divisor
  return nano > maxNano ? undefined : sign === "-" ? -nano : nano
}

export const toCount = (value: unknown): number | undefined =>
  typeof value === "number" && Number.isSafeInteger(value) && value >= 0 && value <= maxCount ? value : undefined

const withMessage = (text: string) => ({ message: () => text })

/** A field of a vendor's response that may be absent. `parse` returns undefined for an invalid value. */
const fieldOf = <A>(kind: string, parse: (value: unknown) => A | undefined) =>
  Schema.transformOrFail(
    Schema.Unknown,
    Schema.declare((_value): _value is A => true),
    {
      strict: true,
      decode: (value, _, ast) => {
        const field = parse(value)
        return field === undefined ? ParseResult.fail(new ParseResult.Type(ast, value)) : ParseResult.succeed(field)
      },
      encode: (value) => ParseResult.succeed(value)
    }
  ).annotations(withMessage(`is no ${kind}`))

const textOf = (value: unknown) => (typeof value === "string" && value !== "" ? value.slice(0, 300) : undefined)
const isAbsent = (value: unknown) => value === undefined || value === null

const Text = fieldOf("text", textOf)
const OptionalText = fieldOf("text", (value) => (isAbsent(value) ? null : textOf(value)))
const Currency = fieldOf("USD", (value) => (textOf(value)?.toUpperCase() === "USD" ? "USD" : undefined))

/** Returns the schema of an amount in units of 10^-`decimals` USD. It is decoded to nano-USD. */
const usdIn = (decimals: number) => fieldOf("plausible amount", (value) => toNano(value, decimals))
const Usd = usdIn(0)

/** A count. An absent one is decoded to 0. */
const Count = fieldOf("plausible count", (value) => (isAbsent(value) ? 0 : toCount(value)))

/** Decodes Unix seconds, or a date with or without a time, to Unix milliseconds. The default time zone is UTC. */
const Time = fieldOf("time", (value) => {
  const at = typeof value === "number" ? value * 1000 : typeof value === "string" ? instant(value.trim()) : undefined
  return at !== undefined && Math.abs(at) < 8e14 ? at : undefined
})

const record = <Fields extends Schema.Struct.Fields>(fields: Fields) =>
  Schema.Struct(fields).annotations(withMessage("is no object"))

const list = <A, I>(item: Schema.Schema<A, I>) => Schema.Array(item).annotations(withMessage("is no list"))

interface Vendor {
  readonly name: string
  /** A provider whose `base_url` has one of these hosts uses this vendor. */
  readonly hosts: ReadonlyArray<string>
  /** The environment variable that holds the admin key. */
  readonly variable: string
  readonly baseUrl: string
  readonly headers: (key: string) => Readonly<Record<string, string>>
  readonly invoices: (client: InvoiceClient) => ReadonlyArray<InvoiceSource>
}

const hour = 3_600_000
const day = 24 * hour

const isoTime = (millis: number) => new Date(millis).toISOString()
const bearer = (key: string) => ({ authorization: `Bearer ${key}` })

/** The query parameters for a vendor's time range, and how to encode a time. */
interface TimeBounds {
  readonly startField: string
  readonly endField: string
  readonly encodeTime: (millis: number) => string | number
}

interface Buckets<Result, I> {
  readonly path: string
  readonly groupBy: readonly [name: string, value: string]
  readonly result: Schema.Schema<Result, I>
  readonly toEntry: (result: Result) => Omit<InvoiceEntry, "at">
}

const bucketUnits = {
  hour: { states: ["tokens"], finalAfter: hour, width: "1h", limit: 168 },
  day: { states: ["usd"], finalAfter: day, width: "1d", limit: 31 }
} as const

/** Makes a source of tokens by hour, or of USD by day, from an API that returns time buckets with results. */
const makeBucketSource = <Result, I>(
  { read, readPages }: InvoiceClient,
  { encodeTime, endField, startField }: TimeBounds,
  unit: keyof typeof bucketUnits,
  { groupBy, path, result, toEntry }: Buckets<Result, I>
): InvoiceSource => {
  const { finalAfter, limit, states, width } = bucketUnits[unit]
  const bucket = record({ at: Schema.propertySignature(Time).pipe(Schema.fromKey(startField)), results: list(result) })
  const page = record({ data: list(bucket), has_more: Schema.Unknown, next_page: Schema.Unknown })
  return {
    unit,
    states,
    finalAfter,
    read: ({ from, to }) =>
      readPages((cursor) => {
        const query: InvoiceQuery = [
          [startField, encodeTime(from)],
          [endField, encodeTime(to)],
          ["bucket_width", width],
          groupBy,
          ["limit", limit],
          ...(cursor === undefined ? [] : [["page", cursor] as const])
        ]
        return Effect.map(read({ path, query }, page), ({ data, has_more, next_page }) => ({
          entries: data
            .filter(({ at }) => at >= from && at < to)
            .flatMap(({ at, results }) => results.map((result) => ({ at, ...toEntry(result) }))),
          has_more,
          next: next_page
        }))
      })
  }
}

const openAiInvoices = (client: InvoiceClient): ReadonlyArray<InvoiceSource> => {
  const bounds: TimeBounds = { startField: "start_time", endField: "end_time", encodeTime: (millis) => millis / 1000 }
  return [
    makeBucketSource(client, bounds, "hour", {
      path: "/organization/usage/completions",
      groupBy: ["group_by", "model"],
      result: record({ model: OptionalText, input_tokens: Count, output_tokens: Count }),
      toEntry: ({ input_tokens: promptTokens, model: name, output_tokens: completionTokens }) => {
        const model = name ?? "(no model)"
        return { key: model, model, promptTokens, completionTokens }
      }
    }),
    makeBucketSource(client, bounds, "day", {
      path: "/organization/costs",
      groupBy: ["group_by", "line_item"],
      result: record({ amount: record({ currency: Currency, value: Usd }), line_item: OptionalText }),
      toEntry: ({ amount, line_item: item }) => {
        const key = item ?? "(no line item)"
        const [model = key] = key.split(", ")
        return { key, model, usd: amount.value }
      }
    })
  ]
}

/** The fields that, with model and description, distinguish the lines of Anthropic's cost report. */
const dimensions = {
  token_type: Schema.Unknown,
  cost_type: Schema.Unknown,
  context_window: Schema.Unknown,
  service_tier: Schema.Unknown,
  inference_geo: Schema.Unknown
}

const cents = 2
const cacheWrites = record({ ephemeral_5m_input_tokens: Count, ephemeral_1h_input_tokens: Count })

const anthropicInvoices = (client: InvoiceClient): ReadonlyArray<InvoiceSource> => {
  const bounds: TimeBounds = { startField: "starting_at", endField: "ending_at", encodeTime: isoTime }
  return [
    makeBucketSource(client, bounds, "hour", {
      path: "/v1/organizations/usage_report/messages",
      groupBy: ["group_by[]", "model"],
      result: record({
        model: OptionalText,
        uncached_input_tokens: Count,
        cache_read_input_tokens: Count,
        cache_creation: Schema.NullishOr(cacheWrites),
        output_tokens: Count
      }),
      toEntry: ({ cache_creation: writes, model: name, ...tokens }) => {
        const model = name ?? "(no model)"
        const written = (writes?.ephemeral_5m_input_tokens ?? 0) + (writes?.ephemeral_1h_input_tokens ?? 0)
        const promptTokens = tokens.uncached_input_tokens + tokens.cache_read_input_tokens + written
        return { key: model, model, promptTokens, completionTokens: tokens.output_tokens }
      }
    }),
    makeBucketSource(client, bounds, "day", {
      path: "/v1/organizations/cost_report",
      groupBy: ["group_by[]", "description"],
      result: record({
        currency: Currency,
        model: OptionalText,
        description: OptionalText,
        amount: usdIn(cents),
        ...dimensions
      }),
      toEntry: ({ amount: usd, currency: _currency, ...line }) => ({
        key: JSON.stringify(line),
        model: line.model ?? line.description ?? "(no description)",
        usd
      })
    })
  ]
}

const retentionDays = 30

const Activity = record({
  date: Text,
  model: Text,
  usage: Usd,
  prompt_tokens: Count,
  completion_tokens: Count,
  endpoint_id: Schema.Unknown,
  provider_name: Schema.Unknown
})

const openRouterInvoices = ({ read, refuse }: InvoiceClient): ReadonlyArray<InvoiceSource> => {
  const readDay = (at: number) => {
    const date = isoTime(at).slice(0, 10)
    const answer = read({ path: "/activity", query: [["date", date]] }, record({ data: list(Activity) }))
    return Effect.map(answer, ({ data }) =>
      data
        .filter((activity) => activity.date.slice(0, 10) === date)
        .map(
          (activity): InvoiceEntry => ({
            key: JSON.stringify([activity.model, activity.endpoint_id ?? null, activity.provider_name ?? null]),
            at,
            model: activity.model,
            usd: activity.usage,
            promptTokens: activity.prompt_tokens,
            completionTokens: activity.completion_tokens
          })
        )
    )
  }
  return [
    {
      unit: "day",
      states: ["tokens", "usd"],
      finalAfter: hour,
      read: Effect.fnUntraced(function* ({ from, to }) {
        const today = Math.floor((yield* Clock.currentTimeMillis) / day) * day
        const oldest = today - retentionDays * day
        if (from < oldest) {
          return yield* refuse(
            `it lists only its last ${retentionDays} days. Use --since ${isoTime(oldest).slice(0, 10)} or later.`
          )
        }
        const days = Array.from({ length: Math.max(0, (Math.min(to, today) - from) / day) }, (_, n) => from + n * day)
        return (yield* Effect.forEach(days, readDay)).flat()
      })
    }
  ]
}

const nanoDecimals = 9

const BillingEvents = record({
  billing_events: list(
    record({
      request_id: Text,
      endpoint_id: Text,
      timestamp: Time,
      // One of these two fields contains the amount.
      cost_estimate_nano_usd: Schema.NullishOr(usdIn(nanoDecimals)),
      cost_total: Schema.NullishOr(Usd)
    })
  ),
  has_more: Schema.Unknown,
  next_cursor: Schema.Unknown
})

const falInvoices = ({ read, readPages, refuse }: InvoiceClient): ReadonlyArray<InvoiceSource> => {
  const path = "/models/billing-events"
  return [
    {
      unit: "request",
      states: ["usd"],
      finalAfter: hour,
      read: ({ from, to }) =>
        readPages(
          Effect.fnUntraced(function* (cursor) {
            const query: InvoiceQuery = [
              ["start", isoTime(from)],
              ["end", isoTime(to)],
              ["limit", 1_000],
              ...(cursor === undefined ? [] : [["cursor", cursor] as const])
            ]
            const { billing_events, has_more, next_cursor } = yield* read({ path, query }, BillingEvents)
            const entries: Array<InvoiceEntry> = []
            for (const { endpoint_id: model, request_id: requestId, timestamp: at, ...costs } of billing_events) {
              const usd = costs.cost_estimate_nano_usd ?? costs.cost_total ?? undefined
              if (usd === undefined) return yield* refuse(`${path} has an event without an amount.`)
              if (at >= from && at < to) entries.push({ key: requestId, requestId, at, model, usd })
            }
            return { entries, has_more, next: next_cursor }
          })
        )
    }
  ]
}

/** Extracts the model from a description such as `Chat grok-4.5`. */
const modelIn = (description: string): string => /(\S*grok\S*)/i.exec(description)?.[1] ?? description

const Labels = Schema.NullishOr(list(Text))

const XaiUsage = record({
  limitReached: Schema.Unknown,
  timeSeries: list(
    record({
      groupLabels: Labels,
      group: Labels,
      dataPoints: list(record({ timestamp: Time, values: list(Usd) }))
    })
  )
})

/** Makes a source of USD by day and description. The API returns which team the key belongs to. */
const xaiInvoices = ({ read, refuse }: InvoiceClient): ReadonlyArray<InvoiceSource> => {
  const encodeTime = (at: number) => isoTime(at).slice(0, 19).replace("T", " ")
  const readTeam = Effect.gen(function* () {
    const path = "/auth/management-keys/validation"
    const { scopeId, teamId } = yield* read({ path }, record({ teamId: OptionalText, scopeId: OptionalText }))
    return teamId ?? scopeId ?? (yield* refuse(`${path} names no team.`))
  })
  return [
    {
      unit: "day",
      states: ["usd"],
      finalAfter: day,
      read: Effect.fnUntraced(function* ({ from, to }) {
        const path = `/v1/billing/teams/${encodeURIComponent(yield* readTeam)}/usage`
        const analyticsRequest = {
          timeRange: { startTime: encodeTime(from), endTime: encodeTime(to), timezone: "Etc/GMT" },
          timeUnit: "TIME_UNIT_DAY",
          values: [{ name: "usd", aggregation: "AGGREGATION_SUM" }],
          groupBy: ["description"],
          filters: []
        }
        const { limitReached, timeSeries } = yield* read({ path, body: { analyticsRequest } }, XaiUsage)
        if (limitReached === true) {
          return yield* refuse("it does not list this much usage at once. Compare a shorter period.")
        }
        const entries: Array<InvoiceEntry> = []
        for (const { dataPoints, group, groupLabels } of timeSeries) {
          const key = (groupLabels ?? group)?.[0]
          if (key === undefined) return yield* refuse(`${path} has a series without a label.`)
          for (const { timestamp: at, values } of dataPoints) {
            const [usd] = values
            if (usd === undefined) return yield* refuse(`${path} has a point without a value.`)
            if (at >= from && at < to) entries.push({ key, at, model: modelIn(key), usd })
          }
        }
        return entries
      })
    }
  ]
}

export const vendors: ReadonlyArray<Vendor> = [
  {
    name: "OpenAI",
    hosts: ["api.openai.com"],
    variable: "OPENAI_ADMIN_KEY",
    baseUrl: "https://api.openai.com/v1",
    headers: bearer,
    invoices: openAiInvoices
  },
  {
    name: "Anthropic",
    hosts: ["api.anthropic.com"],
    variable: "ANTHROPIC_ADMIN_KEY",
    baseUrl: "https://api.anthropic.com",
    headers: (key) => ({ "x-api-key": key, "anthropic-version": "2023-06-01" }),
    invoices: anthropicInvoices
  },
  {
    name: "OpenRouter",
    hosts: ["openrouter.ai"],
    variable: "OPENROUTER_MANAGEMENT_KEY",
    baseUrl: "https://openrouter.ai/api/v1",
    headers: bearer,
    invoices: openRouterInvoices
  },
  {
    name: "fal",
    hosts: ["queue.fal.run", "fal.run"],
    variable: "FAL_ADMIN_KEY",
    baseUrl: "https://api.fal.ai/v1",
    headers: (key) => ({ authorization: `Key ${key}` }),
    invoices: falInvoices
  },
  {
    name: "xAI",
    hosts: ["api.x.ai"],
    variable: "XAI_MANAGEMENT_KEY",
    baseUrl: "https://management-api.x.ai",
    headers: bearer,
    invoices: xaiInvoices
  }
]

const hostOf = ({ baseUrl = "" }: ProviderAccount): string | undefined =>
  URL.canParse(baseUrl) ? new URL(baseUrl).hostname : undefined

/** Finds the vendor by the host of the account's base URL. */
export const vendorOf = (account: ProviderAccount): Vendor | undefined => {
  const host = hostOf(account)
  return host === undefined ? undefined : vendors.find(({ hosts }) => hosts.includes(host))
}

export const vendorInvoices = ({ headers, invoices, name }: Vendor, access: Access): ReadonlyArray<InvoiceSource> =>
  invoices(makeInvoiceClient(name, access, headers))
