import { randomBytes, randomUUID } from "node:crypto"
import { Context } from "effect"
import { v7 } from "uuid"
import { keyPrefix } from "../domain/ApiKey.ts"

export type IdPrefix = "org" | "key" | "vid" | "req" | "call" | "chatcmpl"

/** Where every identifier comes from. */
export class Ids extends Context.Reference<Ids>()("gateway/Ids", {
  defaultValue: () => ({
    /** Ordered by time of making (UUID version 7). */
    uuid: (): string => v7(),
    /** An opaque id under a telling prefix, such as `org_…`; 122 random bits. */
    prefixed: (prefix: IdPrefix): string =>
      `${prefix}${prefix === "chatcmpl" ? "-" : "_"}${randomUUID().replaceAll("-", "")}`,
    /** A whole API key: 256 random bits behind the service's prefix. */
    secret: (): string => keyPrefix + randomBytes(32).toString("base64url"),
    /** What a file's name hides behind: 192 random bits in 32 characters of base64url. */
    unguessable: (): string => randomBytes(24).toString("base64url")
  })
}) {}
