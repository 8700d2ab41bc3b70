import { randomBytes, randomUUID } from "node:crypto"
import { Context } from "effect"

export type IdPrefix = "org" | "key" | "vid" | "req" | "call" | "evt" | "whe" | "opr" | "resp" | "msg" | "chatcmpl"

const hyphens = /-/g

const uuid7 = (): string => {
  const time = Date.now().toString(16).padStart(12, "0")
  return `${time.slice(0, 8)}-${time.slice(8)}-7${randomUUID().slice(15)}`
}

export class Ids extends Context.Reference<Ids>()("gateway/Ids", {
  defaultValue: () => ({
    uuid: uuid7,
    /** Such as `org_…`, ordered by time, so that indexes grow at one end. */
    prefixed: (prefix: IdPrefix): string =>
      `${prefix}${prefix === "chatcmpl" ? "-" : "_"}${uuid7().replace(hyphens, "")}`,
    /** 256 random bits. */
    secret: (prefix: string): string => prefix + randomBytes(32).toString("base64url"),
    unguessable: (): string => randomBytes(24).toString("base64url")
  })
}) {}
