export type JsonObject = { readonly [key: string]: unknown }

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
