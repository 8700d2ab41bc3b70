import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "@effect/platform"
import { ParseResult, Schema } from "effect"
import { type AddressRange, parseRange } from "../../../services/access/AddressRange.ts"
import { BlockedRangeRecord } from "../../../services/admin/BlockListChanges.ts"
import { ChangeErrors, ReadAccess, WriteAccess } from "../Access.ts"
import { field } from "../Fields.ts"
import { pageOf } from "../Page.ts"

const Range = Schema.transformOrFail(
  Schema.String,
  Schema.declare((_value): _value is AddressRange => true),
  {
    strict: true,
    decode: (text, _, ast) => {
      const range = parseRange(text)
      return range === undefined ? ParseResult.fail(new ParseResult.Type(ast, text)) : ParseResult.succeed(range)
    },
    encode: (range) => ParseResult.succeed(range)
  }
)

const range = Schema.Struct({
  range: field(
    "range",
    Range,
    "must be an address or a range such as 203.0.113.0/24 or 2001:db8::/32",
    "An address or a range."
  )
})

const list = HttpApiEndpoint.get("list", "/blocklist")
  .addSuccess(pageOf(BlockedRangeRecord, "BlockedRanges"))
  .middleware(ReadAccess)
  .annotate(OpenApi.Summary, "List the addresses that are refused, all at once")

const add = HttpApiEndpoint.post("add", "/blocklist")
  .setPayload(range)
  .addSuccess(BlockedRangeRecord, { status: 201 })
  .middleware(WriteAccess)
  .annotate(OpenApi.Summary, "Refuse an address or a range")

const remove = HttpApiEndpoint.del("remove", "/blocklist")
  .setUrlParams(range)
  .addSuccess(BlockedRangeRecord)
  .middleware(WriteAccess)
  .annotate(OpenApi.Summary, "Let exactly this address or range in again")

export const BlockListGroup = HttpApiGroup.make("blocklist").add(list).add(add).add(remove).addError(ChangeErrors)
