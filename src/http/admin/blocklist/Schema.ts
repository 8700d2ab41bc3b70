import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "@effect/platform"
import { Schema } from "effect"
import { BlockedRangeRecord } from "../../../services/admin/BlockListChanges.ts"
import { field } from "../../../services/resources/Body.ts"
import { ChangeErrors, ReadAccess, WriteAccess } from "../Access.ts"
import { AddressRangeText, rangeProblem } from "../Fields.ts"
import { pageOf } from "../Page.ts"

const range = Schema.Struct({
  range: field("range", AddressRangeText, rangeProblem, "An address or a range.")
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
