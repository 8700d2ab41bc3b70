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

/** A value's path in the body, such as `messages[0].content`. A function builds the text only if an error needs it. */
export type Path = string | (() => string)

export const formatPath = (path: Path): string => (typeof path === "string" ? path : path())

export const fieldPath =
  (path: Path, field: string): Path =>
  () =>
    `${formatPath(path)}.${field}`

/** Returns the body field that a path begins with. For tools within `input` it is `tools`. */
export const paramOf = (path: string): string =>
  /^input\[\d+\]\.tools\b/.test(path) ? "tools" : path.replace(/\W.*/, "")

/** Throws the refusal of the value at `path`, which `catchRefusal` turns into a result. */
export const invalidAt = (path: Path, problem: string): never => {
  const text = formatPath(path)
  throw refusalAt(paramOf(text), text, problem)
}

/** Throws the refusal of a field of the object at `path`. */
export const invalidIn = (path: Path, field: string, problem: string): never =>
  invalidAt(fieldPath(path, field), problem)

export const readObject = (value: unknown, path: Path): JsonObject =>
  isObject(value) ? value : invalidAt(path, "must be an object")

export const readObjectIn = (from: JsonObject, field: string, path: Path): JsonObject => {
  const value = from[field]
  return isObject(value) ? value : invalidIn(path, field, "is required and must be an object")
}

export const readString = (from: JsonObject, field: string, path: Path): string => {
  const value = from[field]
  return isString(value) ? value : invalidIn(path, field, "must be a string")
}

export const readOptionalString = (from: JsonObject, field: string, path: Path): string | undefined =>
  isAbsent(from[field]) ? undefined : readString(from, field, path)

export const readNonEmptyString = (from: JsonObject, field: string, path: Path): string => {
  const value = from[field]
  return isNonEmptyString(value) ? value : invalidIn(path, field, "is required and must be a non-empty string")
}

export const readRequiredString = (from: JsonObject, field: string, path: Path): string => {
  const value = from[field]
  return isNonEmptyString(value) ? value : invalidIn(path, field, "is required and must be a string")
}

/** Reads an array of objects. `problem` completes the error message for any other value. */
export const readEach = <A>(
  value: unknown,
  path: Path,
  readItem: (item: JsonObject, path: Path) => A,
  problem = "must be an array"
): ReadonlyArray<A> => {
  if (!isArray(value)) return invalidAt(path, problem)
  return value.map((item, index) => {
    const itemPath = () => `${formatPath(path)}[${index}]`
    return readItem(readObject(item, itemPath), itemPath)
  })
}
