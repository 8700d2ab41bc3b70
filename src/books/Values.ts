import { Either, Predicate } from "effect"
import { instantOf } from "../domain/Moment.ts"
import { BooksUnreadable } from "../services/reconcile/ProviderBooks.ts"

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

/** Reads what a vendor answered, and fails with the place of what it does not understand. */
export class Reader {
  readonly #vendor: string

  constructor(vendor: string) {
    this.#vendor = vendor
  }

  refuse(place: string, expected: string): BooksUnreadable {
    return new BooksUnreadable({ message: `${this.#vendor}: ${place} is no ${expected}.` })
  }

  record(value: unknown, place: string): Either.Either<Readonly<Record<string, unknown>>, BooksUnreadable> {
    return Predicate.isReadonlyRecord(value) ? Either.right(value) : Either.left(this.refuse(place, "object"))
  }

  list(value: unknown, place: string): Either.Either<ReadonlyArray<unknown>, BooksUnreadable> {
    return Array.isArray(value) ? Either.right(value) : Either.left(this.refuse(place, "list"))
  }

  text(value: unknown, place: string): Either.Either<string, BooksUnreadable> {
    return typeof value === "string" && value !== ""
      ? Either.right(value.slice(0, 300))
      : Either.left(this.refuse(place, "text"))
  }

  usd(value: unknown, place: string, decimals = 0): Either.Either<bigint, BooksUnreadable> {
    const nano = toNano(value, decimals)
    return nano === undefined ? Either.left(this.refuse(place, "plausible amount")) : Either.right(nano)
  }

  /** Zero where it is absent. */
  count(value: unknown, place: string): Either.Either<number, BooksUnreadable> {
    const count = value === undefined || value === null ? 0 : toCount(value)
    return count === undefined ? Either.left(this.refuse(place, "plausible count")) : Either.right(count)
  }

  /** Unix milliseconds of Unix seconds, or of a date with or without a time, which is UTC where it has no zone. */
  time(value: unknown, place: string): Either.Either<number, BooksUnreadable> {
    const at = typeof value === "number" ? value * 1000 : typeof value === "string" ? parseTime(value) : undefined
    return at !== undefined && Math.abs(at) < 8e14 ? Either.right(at) : Either.left(this.refuse(place, "time"))
  }
}

/** Returns Unix milliseconds, or undefined if the text is not a time. */
export const parseTime = (text: string): number | undefined => {
  if (/^\d{9,11}(?:\.\d+)?$/.test(text)) return Number(text) * 1000
  const [, date, time, zone = "Z"] =
    /^(\d{4}-\d{2}-\d{2})(?:[T ](\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?))?\s?(Z|UTC|[+-]\d{2}:?\d{2})?$/i.exec(text.trim()) ??
    []
  return date === undefined ? undefined : instantOf(date, time, zone.replace(/^UTC$/i, "Z"))
}
