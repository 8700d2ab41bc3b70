import { InvalidRequest } from "../../domain/Failure.ts"

export type JsonObject = { readonly [key: string]: unknown }

/**
 * What a piece of a body was read as, or the first thing wrong with it. A plain union: wrapping each piece of a
 * long conversation costs more than reading it.
 */
export type Read<A> = A | InvalidRequest

export const refused = (read: unknown): read is InvalidRequest => read instanceof InvalidRequest

export const refuse = (param: string | null, message: string): InvalidRequest => new InvalidRequest({ message, param })

/** ``refuseAt("messages", "messages[0].role", "is required")`` says: `messages[0].role` is required. */
export const refuseAt = (param: string, path: string, problem: string): InvalidRequest =>
  refuse(param, `\`${path}\` ${problem}.`)

export const isObject = (value: unknown): value is JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value)

export const isArray = (value: unknown): value is ReadonlyArray<unknown> => Array.isArray(value)
export const isString = (value: unknown): value is string => typeof value === "string"
export const isFilled = (value: unknown): value is string => typeof value === "string" && value !== ""
export const isBoolean = (value: unknown): value is boolean => typeof value === "boolean"

export const isOne = (value: unknown): value is 1 => value === 1

/** Clients send null for a field they leave out. */
export const isAbsent = (value: unknown): value is null | undefined => value === undefined || value === null

export const isBetween =
  (least: number, most: number) =>
  (value: unknown): value is number =>
    typeof value === "number" && value >= least && value <= most

export const isIntegerBetween =
  (least: number, most: number) =>
  (value: unknown): value is number =>
    typeof value === "number" && Number.isInteger(value) && value >= least && value <= most

export const isOneOf =
  <const A extends string>(...words: ReadonlyArray<A>) =>
  (value: unknown): value is A =>
    words.some((word) => word === value)

/** A field that may be left out and is right or wrong by itself. */
export interface Field<A> {
  readonly name: string
  readonly check: (body: JsonObject) => InvalidRequest | undefined
  /** Its value, once checked. */
  readonly of: (body: JsonObject) => A | undefined
}

export const field = <A>(name: string, is: (value: unknown) => value is A, expected: string): Field<A> => ({
  name,
  check: (body) => {
    const value = body[name]
    return isAbsent(value) || is(value) ? undefined : refuseAt(name, name, `must be ${expected}`)
  },
  of: (body) => {
    const value = body[name]
    return is(value) ? value : undefined
  }
})

/** The model that a body names, whatever else it is: the log tells it of requests that are refused, too. */
export const modelIn = (body: unknown): string | undefined =>
  isObject(body) && isString(body.model) ? body.model : undefined

export const each = <A>(
  items: ReadonlyArray<unknown>,
  readItem: (item: unknown, index: number) => Read<A>
): Read<ReadonlyArray<A>> => {
  const values: Array<A> = []
  for (let index = 0; index < items.length; index++) {
    const value = readItem(items[index], index)
    if (refused(value)) return value
    values.push(value)
  }
  return values
}
