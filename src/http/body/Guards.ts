import { InvalidRequest } from "../../domain/Failure.ts"

export type JsonObject = { readonly [key: string]: unknown }

export const isObject = (value: unknown): value is JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value)

export const isArray = (value: unknown): value is ReadonlyArray<unknown> => Array.isArray(value)
export const isString = (value: unknown): value is string => typeof value === "string"
export const isNonEmptyString = (value: unknown): value is string => typeof value === "string" && value !== ""
export const isBoolean = (value: unknown): value is boolean => typeof value === "boolean"

/** Treats null as absent, because many clients send null instead of omitting a field. */
export const isAbsent = (value: unknown): value is null | undefined => value === undefined || value === null

export const isOneOf =
  <const A extends string>(...words: ReadonlyArray<A>) =>
  (value: unknown): value is A =>
    words.some((word) => word === value)

export const readModelId = (body: unknown): string | undefined =>
  isObject(body) && isString(body.model) ? body.model : undefined

export const refuse = (param: string | null, message: string): InvalidRequest => new InvalidRequest({ message, param })

export const refusalAt = (param: string, path: string, problem: string): InvalidRequest =>
  refuse(param, `\`${path}\` ${problem}.`)
