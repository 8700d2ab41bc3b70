import { randomBytes, randomFillSync } from "node:crypto"
import { Context } from "effect"

export type IdPrefix =
  | "org"
  | "key"
  | "pay"
  | "vid"
  | "req"
  | "call"
  | "evt"
  | "whe"
  | "opr"
  | "resp"
  | "msg"
  | "chatcmpl"

const hex = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, "0"))
const randomPerId = 10
const random = { bytes: randomBytes(512 * randomPerId), used: 0 }

let lastAt = 0
/** The time and version part of the ids of the current millisecond, with and without dashes. */
const head = { "-": "", "": "" }

const headNow = (dash: keyof typeof head): string => {
  const at = Date.now()
  if (at !== lastAt) {
    lastAt = at
    const time = at.toString(16).padStart(12, "0")
    head["-"] = `${time.slice(0, 8)}-${time.slice(8)}-7`
    head[""] = `${time}7`
  }
  return head[dash]
}

const nibble = (byte: number): string => hex[byte]?.charAt(1) ?? ""

/** Takes random bytes from a buffer, because a call of `randomFillSync` per id would cost more than everything else. */
const uuid7 = (dash: "-" | ""): string => {
  if (random.used === random.bytes.length) {
    randomFillSync(random.bytes)
    random.used = 0
  }
  const { bytes, used } = random
  random.used += randomPerId
  const at = (index: number): string => hex[bytes[used + index] ?? 0] ?? ""
  const variant = hex[((bytes[used + 2] ?? 0) & 0x3f) | 0x80] ?? ""
  const tail = at(4) + at(5) + at(6) + at(7) + at(8) + at(9)
  return headNow(dash) + nibble(bytes[used] ?? 0) + at(1) + dash + variant + at(3) + dash + tail
}

export class Ids extends Context.Reference<Ids>()("gateway/Ids", {
  defaultValue: () => ({
    uuid: () => uuid7("-"),
    /** Returns an id such as `org_…`. Ids are ordered by time, so indexes grow at one end. */
    prefixed: (prefix: IdPrefix): string => `${prefix}${prefix === "chatcmpl" ? "-" : "_"}${uuid7("")}`,
    /** Returns the prefix and 256 random bits. */
    secret: (prefix: string): string => prefix + randomBytes(32).toString("base64url"),
    unguessable: (): string => randomBytes(24).toString("base64url")
  })
}) {}
