import { isAbsent, isArray, isFilled, isObject, isString, type JsonObject } from "../body/Guards.ts"
import { refuseAt } from "../body/Refusals.ts"

/** Where a value is in the body. A function where only errors need the text. */
export type Path = string | (() => string)

export const textOf = (path: Path): string => (typeof path === "string" ? path : path())

export const below =
  (path: Path, field: string): Path =>
  () =>
    `${textOf(path)}.${field}`

/** The field at fault is the first word of the path. Some clients send their tools among the input. */
export const paramOf = (path: string): string =>
  /^input\[\d+\]\.tools\b/.test(path) ? "tools" : path.replace(/\W.*/, "")

/** Throws the refusal of a value; see `reading`. */
export const invalidAt = (path: Path, problem: string): never => {
  const at = textOf(path)
  throw refuseAt(paramOf(at), at, problem)
}

/** Throws the refusal of a field of the object at `path`. */
export const invalidIn = (path: Path, field: string, problem: string): never => invalidAt(below(path, field), problem)

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

export const readFilled = (from: JsonObject, field: string, path: Path): string => {
  const value = from[field]
  return isFilled(value) ? value : invalidIn(path, field, "is required and must be a non-empty string")
}

/** A name or a type, without which the object means nothing. */
export const readWord = (from: JsonObject, field: string, path: Path): string => {
  const value = from[field]
  return isFilled(value) ? value : invalidIn(path, field, "is required and must be a string")
}

/** An array of objects; `problem` completes the refusal of any other value. */
export const readEach = <A>(
  value: unknown,
  path: Path,
  readItem: (item: JsonObject, path: Path) => A,
  problem = "must be an array"
): ReadonlyArray<A> => {
  if (!isArray(value)) return invalidAt(path, problem)
  return value.map((item, index) => {
    const at = () => `${textOf(path)}[${index}]`
    return readItem(readObject(item, at), at)
  })
}
