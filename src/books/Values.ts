import { ParseResult, Schema } from "effect"
import { instant } from "../domain/Moment.ts"

const largestNano = 10n ** 18n
const largestCount = 1e15

const scientific = /^([+-]?)(\d{1,40})(?:\.(\d{0,40}))?(?:[eE]([+-]?\d{1,3}))?$/

/** Nano-USD, rounded half away from zero, of a decimal text or number of units of 10^-`decimals` USD; undefined if it is none. */
export const toNano = (value: unknown, decimals = 0): bigint | undefined => {
  const text = typeof value === "number" ? String(value) : typeof value === "string" ? value.trim() : ""
  const [, sign = "", whole, fraction = "", exponent = "0"] = scientific.exec(text) ?? []
  if (whole === undefined) return undefined
  const shift = 9 + Number(exponent) - decimals - fraction.length
  if (shift > 30) return undefined
  const digits = BigInt(whole + fraction)
  const divisor = 10n ** BigInt(Math.max(0, -shift))
  const nano = shift >= 0 ? digits * 10n ** BigInt(shift) : (digits + divisor / 2n) / divisor
  return nano > largestNano ? undefined : sign === "-" ? -nano : nano
}

export const toCount = (value: unknown): number | undefined =>
  typeof value === "number" && Number.isSafeInteger(value) && value >= 0 && value <= largestCount ? value : undefined

const problem = (text: string) => ({ message: () => text })

/** A value of a vendor's answer; `parse` returns undefined to refuse it, also where it is absent. */
const parsed = <A>(kind: string, parse: (value: unknown) => A | undefined) =>
  Schema.transformOrFail(
    Schema.Unknown,
    Schema.declare((_value): _value is A => true),
    {
      strict: true,
      decode: (value, _, ast) => {
        const read = parse(value)
        return read === undefined ? ParseResult.fail(new ParseResult.Type(ast, value)) : ParseResult.succeed(read)
      },
      encode: (value) => ParseResult.succeed(value)
    }
  ).annotations(problem(`is no ${kind}`))

const textOf = (value: unknown) => (typeof value === "string" && value !== "" ? value.slice(0, 300) : undefined)
const isAbsent = (value: unknown) => value === undefined || value === null

export const Text = parsed("text", textOf)
export const OptionalText = parsed("text", (value) => (isAbsent(value) ? null : textOf(value)))
export const Currency = parsed("USD", (value) => (textOf(value)?.toUpperCase() === "USD" ? "USD" : undefined))

/** In nano-USD. */
export const usdIn = (decimals: number) => parsed("plausible amount", (value) => toNano(value, decimals))
export const Usd = usdIn(0)

/** Zero where it is absent. */
export const Count = parsed("plausible count", (value) => (isAbsent(value) ? 0 : toCount(value)))

/** Unix milliseconds of Unix seconds, or of a date with or without a time, which is UTC where it has no zone. */
export const Time = parsed("time", (value) => {
  const at = typeof value === "number" ? value * 1000 : typeof value === "string" ? instant(value.trim()) : undefined
  return at !== undefined && Math.abs(at) < 8e14 ? at : undefined
})

export const record = <Fields extends Schema.Struct.Fields>(fields: Fields) =>
  Schema.Struct(fields).annotations(problem("is no object"))

export const list = <A, I>(item: Schema.Schema<A, I>) => Schema.Array(item).annotations(problem("is no list"))
