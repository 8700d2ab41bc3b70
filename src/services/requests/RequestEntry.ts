import { Option, Record, Schema } from "effect"
import type { KeyId } from "../../domain/ApiKey.ts"
import type { Surface } from "../../domain/Model.ts"
import { maxStored } from "../../domain/Money.ts"
import type { OrgId } from "../../domain/Organization.ts"
import type { AttemptEntry } from "../routing/AttemptHistory.ts"
import { toStorable } from "../sql/Statement.ts"
import type { RequestColumn } from "./RequestColumns.ts"
import { type RequestUsage, requestCounts } from "./RequestCounts.ts"

/** The error that a client received. */
export interface ReportedError {
  readonly param: string | null
  readonly message: string
  readonly hint?: string | undefined
}

/** An error of the gateway itself. */
export const internalFailure: ReportedError = { param: null, message: "Internal server error." }

/** Without prompts, output and secrets; milliseconds and nano-USD. */
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

const toLogText = (text: string | undefined): string | null =>
  text === undefined ? null : isPlain(text) ? text : toStorable(text.slice(0, 200))

const withoutControls = (text: string | undefined): string | null => {
  if (text === undefined) return null
  return isPlain(text) ? text : text.replace(/[\p{Cc}\p{Cs}]/gu, "").slice(0, 200)
}

const maxMessage = 1_000

/** Cuts values of the request, which may be as long as the request itself. */
const toMessage = (text: string): string => {
  const short = text.replace(/`([^`]{200})[^`]+`/g, "`$1…`").replace(/(\S{200})\S+/g, "$1…")
  return toStorable(short.slice(0, maxMessage))
}

export const errorOf = (error: ReportedError | undefined) =>
  error === undefined
    ? null
    : {
        param: toLogText(error.param ?? undefined),
        message: toMessage(error.message),
        hint: error.hint === undefined ? null : toMessage(error.hint)
      }

const amount = (nano: bigint | undefined): string | undefined =>
  nano === undefined ? undefined : (nano < maxStored ? nano : maxStored).toString()

const uncounted = Record.map(requestCounts, (): number | null => null)
const sources = Record.toEntries(Record.map(requestCounts, ({ usage }) => usage))

const countsOf = (usage: RequestUsage | undefined) => {
  if (usage === undefined) return uncounted
  const counts = { ...uncounted }
  for (const [column, source] of sources) counts[column] = usage[source] ?? null
  return counts
}

export const toRow = (entry: RequestEntry): Readonly<Record<RequestColumn, unknown>> => ({
  id: entry.id,
  request_id: entry.requestId,
  at: new Date(entry.at).toISOString(),
  surface: entry.surface,
  status: entry.status,
  code: entry.code,
  error: errorOf(entry.error),
  org_id: entry.org,
  key_id: entry.key,
  address: toLogText(entry.address),
  user_agent: withoutControls(entry.userAgent),
  end_user: entry.endUser === undefined ? null : toStorable(entry.endUser),
  tag: entry.tag ?? null,
  model: toLogText(entry.model),
  route: entry.route ?? null,
  preferred_route: entry.preferredRoute ?? null,
  provider: entry.provider ?? null,
  stream: entry.stream,
  attempts: entry.attempts.map(
    ({ cost, detail, ms, outcome, provider, providerRequestId, route, statedCost, status }) => ({
      route,
      provider,
      outcome,
      status,
      ms,
      provider_request_id: providerRequestId,
      detail: toLogText(detail) ?? undefined,
      cost_nano: amount(cost),
      stated_nano: amount(statedCost)
    })
  ),
  provider_request_id: entry.attempts.findLast((it) => it.providerRequestId !== undefined)?.providerRequestId ?? null,
  notes: entry.notes,
  ...countsOf(entry.usage),
  hold_id: entry.hold ?? null,
  charge: entry.charge.toString(),
  cost: amount(entry.cost) ?? null,
  stated_cost: amount(entry.statedCost) ?? null,
  price_id: entry.priceId ?? null,
  first_byte_ms: entry.firstByteMs ?? null,
  total_ms: entry.totalMs
})

/** The JSON of a row, written together with its charge. */
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
const readEssentials = Schema.decodeUnknownOption(Schema.parseJson(Essentials))

/** A charge's row where there is none, or where the database refuses what is in it. */
export const bareRow = ({ id, key, org }: Pick<RequestEntry, "id" | "key" | "org">, at: number, refused = ""): string =>
  JSON.stringify({
    ...Option.getOrElse(readEssentials(refused), () => ({
      request_id: id,
      surface: "chat",
      status: 200,
      stream: false
    })),
    id,
    at: new Date(at).toISOString(),
    org_id: org,
    key_id: key,
    hold_id: id,
    attempts: [],
    notes: [],
    total_ms: 0
  })
