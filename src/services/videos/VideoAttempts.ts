import type { SqlClient, Statement } from "@effect/sql"
import type { AttemptEntry } from "../routing/AttemptHistory.ts"
import type { ProviderFailure } from "../routing/Provider.ts"
import { toStorable } from "../sql/Statement.ts"
import type { JobAt } from "./VideoState.ts"

const maxDetail = 200

export const toDetail = (text: string): string => toStorable(text.slice(0, maxDetail))

export const attemptsJson = (attempts: ReadonlyArray<AttemptEntry>): string =>
  JSON.stringify(
    attempts.map(({ detail, providerRequestId, ...attempt }) => ({
      ...attempt,
      detail: detail === undefined ? undefined : toDetail(detail),
      provider_request_id: providerRequestId
    }))
  )

/** The failure of an attempt that its provider accepted or may have accepted. */
export type AttemptFailure = Pick<ProviderFailure, "class" | "status" | "detail">

export const unconfirmedSubmit: AttemptFailure = {
  class: "network",
  status: undefined,
  detail: "the submit was not confirmed: the provider may have it"
}

export const missedDeadline = (lastError: string | null): AttemptFailure => ({
  class: "timeout",
  status: undefined,
  detail: `the render was not finished by its deadline${lastError === null ? "" : `; last error: ${lastError}`}`
})

/** Returns the `attempts` of a render, with the accepted submit (the last one) replaced by these fields. */
export const endLastAttempt = (
  sql: SqlClient.SqlClient,
  fields: Readonly<Record<string, string | number | undefined>>
): Statement.Fragment =>
  sql`(attempts - (-1)) || jsonb_build_array(
      coalesce(attempts -> -1, '{}') - 'status' || jsonb_build_object('ms', round(
        coalesce((attempts -> -1 ->> 'ms')::numeric, 0)
        + coalesce(greatest(0, extract(epoch FROM clock_timestamp() - rendering_since)) * 1000, 0)
      )) || ${JSON.stringify(fields)}::text::jsonb
    )`

/** Returns the `attempts` of a job with a failed one: a render, or a submit that was never confirmed. */
export const attemptsAfter = (
  sql: SqlClient.SqlClient,
  { route, step }: JobAt<"submitting" | "rendering">,
  { class: outcome, detail, status }: AttemptFailure
): Statement.Fragment => {
  const ended = {
    route: route?.id ?? "",
    provider: route?.provider.name ?? "",
    outcome,
    status,
    detail: toDetail(detail)
  }
  return step === "rendering"
    ? endLastAttempt(sql, ended)
    : sql`attempts || ${JSON.stringify([{ ...ended, ms: 0 }])}::text::jsonb`
}
