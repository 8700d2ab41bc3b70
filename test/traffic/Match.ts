/** `differences`: what an expectation finds wrong with a value. */

import { inspect, isDeepStrictEqual } from "node:util"
import { Predicate } from "effect"

const shown = (value: unknown): string => {
  const text = inspect(value, { depth: 8, breakLength: 160, maxStringLength: 400 })
  return text.length > 1_500 ? `${text.slice(0, 1_500)}…` : text
}

const texts = (value: unknown): string => (typeof value === "string" ? value : (JSON.stringify(value) ?? ""))

/** Tests that stand in the place of a value, such as `{$matches: "^[a-z]+$"}`. */
const tests: Readonly<Record<string, (actual: unknown, given: unknown) => boolean>> = {
  $matches: (actual, given) => typeof actual === "string" && new RegExp(String(given), "su").test(actual),
  $contains: (actual, given) =>
    Array.isArray(actual)
      ? actual.some((item) => differences(item, given).length === 0)
      : texts(actual).includes(String(given)),
  $lacks: (actual, given) => !texts(actual).includes(String(given)),
  $absent: (actual, given) => (actual === undefined) === given,
  $size: (actual, given) => (typeof actual === "string" || Array.isArray(actual)) && actual.length === given,
  $max: (actual, given) => typeof actual === "string" && actual.length <= Number(given),
  $is: (actual, given) => isDeepStrictEqual(actual, given),
  $not: (actual, given) => differences(actual, given).length > 0
}

/** An object names a part of the fields, a list has all items; anything else is equal. */
export const differences = (actual: unknown, expected: unknown, at = ""): ReadonlyArray<string> => {
  if (Array.isArray(expected)) {
    if (!Array.isArray(actual)) return [`${at}: ${shown(actual)} instead of ${shown(expected)}`]
    const size =
      actual.length === expected.length
        ? []
        : [`${at}: ${actual.length} instead of ${expected.length} items: ${shown(actual)}`]
    return [...size, ...expected.flatMap((item, index) => differences(actual[index], item, `${at}[${index}]`))]
  }
  if (!Predicate.isRecord(expected)) {
    return Object.is(actual, expected) ? [] : [`${at}: ${shown(actual)} instead of ${shown(expected)}`]
  }
  return Object.entries(expected).flatMap(([key, value]) => {
    if (key.startsWith("$")) {
      const test = tests[key]
      if (test === undefined) return [`${at}: no such test as ${key}`]
      return test(actual, value) ? [] : [`${at}: ${shown(actual)}, but ${key}: ${shown(value)}`]
    }
    if (!Predicate.isRecord(actual)) return [`${at}: ${shown(actual)} instead of an object`]
    return differences(actual[key], value, at === "" ? key : `${at}.${key}`)
  })
}
