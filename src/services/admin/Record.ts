import { Schema } from "effect"
import { toUsd } from "../../domain/Money.ts"

const nanoPerUsd = 1e9

/** Nano-USD, as a JSON number of USD. */
export const Usd = Schema.transform(Schema.Number, Schema.BigIntFromSelf, {
  strict: true,
  decode: (usd) => BigInt(Math.round(usd * nanoPerUsd)),
  encode: toUsd
})

/** A date, as Unix seconds. */
export const UnixSeconds = Schema.transform(Schema.Number, Schema.DateFromSelf, {
  strict: true,
  decode: (seconds) => new Date(seconds * 1000),
  encode: (date) => Math.floor(date.getTime() / 1000)
})

export const TextOrNull = Schema.NullOr(Schema.String)
export const TimeOrNull = Schema.NullOr(UnixSeconds)
