import { NanoUsd } from "../../domain/Money.ts"
import type { Row } from "../sql/Statement.ts"

export const isKeyOf = <K extends string>(known: Readonly<Record<K, true>>, value: unknown): value is K =>
  typeof value === "string" && Object.hasOwn(known, value)

export const unexpectedRow = (row: Row) => new Error(`the ledger's statement answered ${JSON.stringify(row)}`)

export const amountIn = (value: unknown, row: Row): NanoUsd => {
  if (typeof value !== "string") throw unexpectedRow(row)
  return NanoUsd(BigInt(value))
}
