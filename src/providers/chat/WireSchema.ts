import { identity, Schema } from "effect"
import { asFields, asRecords, asText } from "../client/Json.ts"

/** Missing fields and fields of another type read as absent. */
export const lenient = <A, I>(to: Schema.Schema<A, I>, read: (value: unknown) => unknown) =>
  Schema.transform(Schema.Unknown, to, { strict: false, decode: read, encode: identity })

export const Text = lenient(Schema.String, asText)

/** The arguments of a call as JSON; undefined where they cannot be read. */
export const Arguments = (read: (value: unknown) => string | undefined) =>
  lenient(Schema.UndefinedOr(Schema.String), read)

export const fields = <const F extends Schema.Struct.Fields>(of: F) =>
  Schema.transform(Schema.Unknown, Schema.Struct(of), { strict: false, decode: asFields, encode: identity })

export const records = <A, I>(item: Schema.Schema<A, I>) => lenient(Schema.Array(item), asRecords)
