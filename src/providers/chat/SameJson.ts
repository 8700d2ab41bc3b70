import { exactItems, exactMembers, RawJson } from "../../domain/JsonSource.ts"
import { parseJsonExact } from "../client/Json.ts"

const numberParts = /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d{1,15}))?$/
const zero = 0x30

/** A number as its digits without zeros at either end and a power of ten: one text for each value. */
const normalize = (text: string): string => {
  const [, sign, whole, fraction = "", exponent = "0"] = numberParts.exec(text) ?? []
  if (whole === undefined) return text
  const digits = whole + fraction
  let [start, end] = [0, digits.length]
  while (digits.charCodeAt(start) === zero) start++
  while (end > start && digits.charCodeAt(end - 1) === zero) end--
  if (start === end) return "0"
  const power = Number(exponent) - fraction.length + (digits.length - end)
  return `${sign}${digits.slice(start, end)}e${power}`
}

const numberText = (value: unknown): string | undefined => {
  if (value instanceof RawJson) return value.text
  return typeof value === "number" ? String(value) : undefined
}

const isSameNumber = (one: string, other: string | undefined): boolean =>
  one === other || (other !== undefined && normalize(one) === normalize(other))

const areSameItems = (one: ReadonlyArray<unknown>, other: ReadonlyArray<unknown>): boolean => {
  const [items, others] = [exactItems(one) ?? one, exactItems(other) ?? other]
  return items.length === others.length && items.every((item, at) => isSame(item, others[at]))
}

const areSameMembers = (one: object, other: object): boolean => {
  const members = exactMembers(one) ?? Object.entries(one)
  const others = new Map(exactMembers(other) ?? Object.entries(other))
  return (
    members.length === others.size &&
    members.every(([name, member]) => others.has(name) && isSame(member, others.get(name)))
  )
}

const isSame = (one: unknown, other: unknown): boolean => {
  const number = numberText(one)
  if (number !== undefined) return isSameNumber(number, numberText(other))
  if (typeof one !== "object" || one === null) return one === other
  if (typeof other !== "object" || other === null || other instanceof RawJson) return false
  if (Array.isArray(one)) return Array.isArray(other) && areSameItems(one, other)
  return !Array.isArray(other) && areSameMembers(one, other)
}

/** Whether two texts are JSON of the same value, with numbers of any length compared digit by digit. */
export const isSameValue = (text: string, again: string): boolean => {
  const value = parseJsonExact(text)
  return value !== undefined && isSame(value, parseJsonExact(again))
}
