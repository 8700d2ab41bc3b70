import type { RequestRecord } from "../requests/RequestRecord.ts"

/** An answer that leaves, or 499 for a client that left before it. */
export interface AnsweredRequest {
  readonly requestId: string
  /** A generating surface, a group of reads, `media`, `system` or `none`. */
  readonly surface: string
  readonly method: string
  /** The endpoint's, without ids; undefined: no endpoint's. */
  readonly path: string | undefined
  readonly status: number
  readonly code: string | null
  /** On the monotonic clock; undefined: the request could not be read. */
  readonly startedAt: number | undefined
  /** The record of an authenticated generating request. */
  readonly record?: RequestRecord | undefined
}

/** In milliseconds. */
export interface Times {
  readonly total: number
  readonly firstByte: number | undefined
  readonly providers: number
  /** The gateway's own share, of a stream up to its first output. */
  readonly own: number | undefined
}

export const timesOf = ({ record, startedAt }: AnsweredRequest, now: number): Times | undefined => {
  if (startedAt === undefined) return undefined
  const total = now - startedAt
  const firstByte = record?.firstByteAt === undefined ? undefined : record.firstByteAt - startedAt
  let providers = 0
  for (const { ms } of record?.attempts.list ?? []) providers += ms
  const until = record?.stream === true && firstByte !== undefined ? firstByte : total
  const own = record?.attempts.list.length ? Math.max(0, until - providers) : undefined
  return { total, firstByte, providers, own }
}
