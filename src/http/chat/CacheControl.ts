import { Schema } from "effect"
import type { CacheControl } from "../../domain/Chat.ts"
import { optional } from "../../domain/Constraints.ts"
import { isAbsent, isObject, isOneOf, type JsonObject } from "../body/Guards.ts"
import { refuseAt } from "../body/Refusals.ts"
import { type Result } from "./Result.ts"

export const CacheMark = Schema.Struct({
  type: Schema.Literal("ephemeral"),
  ttl: optional(Schema.Literal("5m", "1h"), "How long the vendor keeps it after its last use: `5m` by default.")
}).annotations({
  identifier: "CacheControl",
  description: "Asks vendors that cache by mark to cache the prompt up to here. Others do not get it."
})

const isTtl = isOneOf("5m", "1h")

const unmarked: { readonly cache_control?: CacheControl } = {}

/** The field to spread into what was read beside it. */
export const readCacheMark = (
  { cache_control: mark }: JsonObject,
  param: string,
  path: () => string
): Result<typeof unmarked> => {
  if (isAbsent(mark)) return unmarked
  const at = `${path()}.cache_control`
  if (!isObject(mark) || mark.type !== "ephemeral") return refuseAt(param, at, "must be an object of type ephemeral")
  if (isAbsent(mark.ttl)) return { cache_control: { type: "ephemeral" } }
  return isTtl(mark.ttl)
    ? { cache_control: { type: "ephemeral", ttl: mark.ttl } }
    : refuseAt(param, `${at}.ttl`, "must be one of 5m, 1h")
}
