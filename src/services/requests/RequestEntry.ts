import { Option, Record, Schema } from "effect"
import type { KeyId } from "../../domain/ApiKey.ts"
import type { Surface } from "../../domain/Model.ts"
import { maxStored } from "../../domain/Money.ts"
import type { OrgId } from "../../domain/Organization.ts"
import type { AttemptEntry } from "../routing/Attempt.ts"
import { toStorable } from "../sql/SqlStatement.ts"
import { type RequestColumn, timeOf } from "./RequestColumns.ts"
import { type RequestUsage, requestCounts } from "./RequestCounts.ts"

/** The error that a client received. */
export interface ReportedError {
  readonly param: string | null
  readonly message: string
  readonly hint?: string | undefined
}

/** Reported for internal errors. */
export const internalFailure: ReportedError = { param: null, message: "Internal server error." }

/** One row of the request log, without prompts, output and secrets. Times are in milliseconds, amounts in nano-USD. */
export interface RequestEntry {
  readonly id: string
  readonly requestId: string
  readonly at: number
  readonly surface: Surface
  readonly status: number
  readonly code: string | null
  readonly error?: ReportedError | undefined
  readonly org: OrgId
  readonly key: KeyId
  readonly address?: string | undefined
  readonly userAgent?: string | undefined
  readonly endUser?: string | undefined
  readonly tag?: string | undefined
  readonly model: string | undefined
  readonly route: string | undefined
  readonly preferredRoute?: string | undefined
  readonly provider: string | undefined
  readonly stream: boolean
  readonly attempts: ReadonlyArray<AttemptEntry>
  readonly notes: ReadonlyArray<
    | "usage_estimated"
    | "usage_bounded"
    | "hold_exceeded"
    | "hold_lost"
    | "replayed"
    | "cap_lowered"
    | "charge_waived"
    | "stop_reason_unknown"
    | "usage_unexplained"
    | "block_unknown"
    | "stated_cost_dropped"
  >
  readonly usage: RequestUsage | undefined
  readonly hold: string | undefined
  readonly charge: bigint
  readonly cost: bigint | undefined
  readonly statedCost?: bigint | undefined
  readonly priceId?: string | undefined
  readonly firstByteMs: number | undefined
  readonly totalMs: number
}

const isPlain = (text: string): boolean => text.length <= 200 && /^[ -~]*$/.test(text)

const toLogText = (text: string | undefined): string | undefined =>
  text === undefined ? undefined : isPlain(text) ? text : toStorable(text.slice(0, 200))

const removeControls = (text: string | undefined): string | undefined => {
  if (text === undefined) return undefined
  return isPlain(text) ? text : text.replace(/[\p{Cc}\p{Cs}]/gu, "").slice(0, 200)
}

const maxMessageLength = 1_000

/** Truncates values of the request, which may be as long as its body. */
const toMessage = (text: string): string => {
  const shortenedText = text.replace(/`([^`]{200})[^`]+`/g, "`$1…`").replace(/(\S{200})\S+/g, "$1…")
  return toStorable(shortenedText.slice(0, maxMessageLength))
}

export const errorOf = (error: ReportedError | undefined) =>
  error === undefined
    ? null
    : {
        param: toLogText(error.param ?? undefined) ?? null,
        message: toMessage(error.message),
        hint: error.hint === undefined ? null : toMessage(error.hint)
      }

const toAmountText = (nano: bigint | undefined): string | undefined =>
  nano === undefined ? undefined : (nano < maxStored ? nano : maxStored).toString()

const noCounts = Record.map(requestCounts, (): number | undefined => undefined)
const countSources = Record.toEntries(Record.map(requestCounts, ({ usage }) => usage))

const countsOf = (usage: RequestUsage | undefined) => {
  if (usage === undefined) return noCounts
  const counts = { ...noCounts }
  for (const [column, source] of countSources) counts[column] = usage[source]
  return counts
}

/** Returns the provider request id of the last attempt that has one. */
const providerRequestIdOf = ({ attempts }: RequestEntry): string | undefined =>
  attempts.findLast((attempt) => attempt.providerRequestId !== undefined)?.providerRequestId

/**
 * Whether the provider's request id of the last attempt is stored only in the row's column, not again in `attempts`. This
 * saves 60 bytes.
 * `withProviderId` adds the id to the attempt when the row is read.
 */
const isInColumn = ({ attempts }: RequestEntry, id: string | undefined): boolean =>
  attempts.findIndex(({ providerRequestId }) => providerRequestId === id) === attempts.length - 1

/** Omits null columns, because PostgreSQL then uses 4 % less CPU for a settlement. */
export const toRow = (entry: RequestEntry): Readonly<Record<RequestColumn, unknown>> => {
  const providerRequestId = providerRequestIdOf(entry)
  const columnId = isInColumn(entry, providerRequestId) ? providerRequestId : undefined
  return {
    id: entry.id,
    request_id: entry.requestId,
    at: new Date(entry.at).toISOString(),
    surface: entry.surface,
    status: entry.status,
    code: entry.code ?? undefined,
    error: errorOf(entry.error) ?? undefined,
    org_id: entry.org,
    key_id: entry.key,
    address: toLogText(entry.address),
    user_agent: removeControls(entry.userAgent),
    end_user: entry.endUser === undefined ? undefined : toStorable(entry.endUser),
    tag: entry.tag,
    model: toLogText(entry.model),
    route: entry.route,
    preferred_route: entry.preferredRoute,
    provider: entry.provider,
    stream: entry.stream,
    attempts: entry.attempts.map(
      ({ cost, detail, ms, outcome, provider, providerRequestId: id, route, statedCost, status }) => ({
        route,
        provider,
        outcome,
        status,
        ms,
        provider_request_id: id === columnId ? undefined : id,
        detail: toLogText(detail),
        cost_nano: toAmountText(cost),
        stated_nano: toAmountText(statedCost)
      })
    ),
    provider_request_id: providerRequestId,
    notes: entry.notes,
    ...countsOf(entry.usage),
    hold_id: entry.hold,
    charge: entry.charge.toString(),
    cost: toAmountText(entry.cost),
    stated_cost: toAmountText(entry.statedCost),
    price_id: entry.priceId,
    first_byte_ms: entry.firstByteMs,
    total_ms: entry.totalMs
  }
}

/** Returns the JSON of a row that is written together with its charge. */
export const rowOf = (entry: RequestEntry): string => JSON.stringify(toRow(entry))

const Essentials = Schema.Struct({
  request_id: Schema.String,
  surface: Schema.String,
  status: Schema.Number,
  model: Schema.NullOr(Schema.String),
  route: Schema.NullOr(Schema.String),
  provider: Schema.NullOr(Schema.String),
  stream: Schema.Boolean,
  tag: Schema.optional(Schema.NullOr(Schema.String))
})
const decodeEssentials = Schema.decodeUnknownOption(Schema.parseJson(Essentials))

/**
 * Returns a minimal log row for a charge whose own row is missing or was rejected by the database. Its `at` is the
 * arrival time in its id, not now: lists find the rows of a time range by id, and a stream may last an hour.
 */
export const minimalLogRow = ({ id, key, org }: Pick<RequestEntry, "id" | "key" | "org">, refusedRow = ""): string =>
  JSON.stringify({
    ...Option.getOrElse(decodeEssentials(refusedRow), () => ({
      request_id: id,
      surface: "chat",
      status: 200,
      stream: false
    })),
    id,
    at: new Date(timeOf(id)).toISOString(),
    org_id: org,
    key_id: key,
    hold_id: id,
    attempts: [],
    notes: [],
    total_ms: 0
  })
