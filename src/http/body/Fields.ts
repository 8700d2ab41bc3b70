import { InvalidRequest } from "../../domain/Failure.ts"

export type JsonObject = { readonly [key: string]: unknown }

/** A plain union: wrapping each field costs more than reading it. */
export type Read<A> = A | InvalidRequest

export const refused = (read: unknown): read is InvalidRequest => read instanceof InvalidRequest

export const refuse = (param: string | null, message: string): InvalidRequest => new InvalidRequest({ message, param })

export const refuseAt = (param: string, path: string, problem: string): InvalidRequest =>
  refuse(param, `\`${path}\` ${problem}.`)

export const isObject = (value: unknown): value is JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value)

export const isArray = (value: unknown): value is ReadonlyArray<unknown> => Array.isArray(value)
export const isString = (value: unknown): value is string => typeof value === "string"
export const isFilled = (value: unknown): value is string => typeof value === "string" && value !== ""
export const isBoolean = (value: unknown): value is boolean => typeof value === "boolean"

/** Clients send null for a field they leave out. */
export const isAbsent = (value: unknown): value is null | undefined => value === undefined || value === null

export const isOneOf =
  <const A extends string>(...words: ReadonlyArray<A>) =>
  (value: unknown): value is A =>
    words.some((word) => word === value)

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
