import { hash } from "node:crypto"
import type { Reference } from "../../domain/Media.ts"

export type Json =
  | null
  | boolean
  | number
  | string
  | ReadonlyArray<Json>
  | { readonly [name: string]: Json | undefined }

/** The same text for the same value, in whatever order its fields came; a field that is undefined is none. */
const canonical = (value: Json): string => {
  if (typeof value !== "object" || value === null) return JSON.stringify(value)
  if (isList(value)) return `[${value.map(canonical).join(",")}]`
  const fields = Object.entries(value).flatMap(([name, field]) =>
    field === undefined ? [] : [{ name, text: `${JSON.stringify(name)}:${canonical(field)}` }]
  )
  fields.sort((one, other) => (one.name < other.name ? -1 : 1))
  return `{${fields.map(({ text }) => text).join(",")}}`
}

const isList: (value: Json) => value is ReadonlyArray<Json> = Array.isArray

const referenced = (reference: Reference): Json =>
  reference._tag === "Url" ? { url: reference.url } : { sha256: hash("sha256", reference.bytes, "hex") }

/**
 * What tells one decoded request from another, in hexadecimal: its fields by name, and its references in order. A
 * reference's bytes count, a URL counts as it is written.
 */
export const fingerprint = (
  fields: Readonly<Record<string, Json | undefined>>,
  references: ReadonlyArray<Reference>
): string => hash("sha256", canonical([fields, references.map(referenced)]), "hex")
