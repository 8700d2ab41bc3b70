import { Predicate } from "effect"

export type Fields = Readonly<Record<PropertyKey, unknown>>

const none: Fields = {}

export const parseJson = (text: string): unknown => {
  try {
    return JSON.parse(text.charCodeAt(0) === 0xfe_ff ? text.slice(1) : text)
  } catch {
    return undefined
  }
}

export const asFields = (value: unknown): Fields => (Predicate.isRecord(value) ? value : none)

export const asText = (value: unknown): string => (typeof value === "string" ? value : "")

export const asList = (value: unknown): ReadonlyArray<unknown> => (Array.isArray(value) ? value : [])

export const asRecords = (value: unknown): ReadonlyArray<Fields> => asList(value).filter(Predicate.isRecord)

export const asCount = (value: unknown): number =>
  typeof value === "number" && Number.isFinite(value) && value > 0 ? Math.floor(value) : 0
