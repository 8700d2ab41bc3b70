import { NanoUsd } from "../../domain/Money.ts"
import type { Row } from "../sql/Statement.ts"

export const isKeyOf = <K extends string>(known: Readonly<Record<K, true>>, value: unknown): value is K =>
  typeof value === "string" && Object.hasOwn(known, value)

export const unexpectedRow = (row: Row) => new Error(`the ledger's statement answered ${JSON.stringify(row)}`)

export const amountIn = (value: unknown, row: Row): NanoUsd => {
  if (typeof value !== "string") throw unexpectedRow(row)
  return NanoUsd(BigInt(value))
}

export interface Closed {
  readonly state: "open" | "settled" | "released" | "missing"
  readonly charged: NanoUsd | undefined
}

const states = { open: true, settled: true, released: true, missing: true } as const

/** What a statement that closes holds says of one. */
export const readClosed = (row: Row): Closed => {
  const { charged, state } = row
  if (!isKeyOf(states, state)) throw unexpectedRow(row)
  return { state, charged: charged === null ? undefined : amountIn(charged, row) }
}

/** Those of `input` that are not among the `closed`: nearly always none, which the planner cannot know. */
export const knownHolds = `
  SELECT id, state, charged FROM all_holds
  WHERE id = ANY (ARRAY(SELECT id FROM input EXCEPT SELECT id FROM closed))`
