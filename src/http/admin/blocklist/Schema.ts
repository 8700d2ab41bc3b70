import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "@effect/platform"
import { Schema } from "effect"
import { BlockedRange } from "../../../services/access/BlockList.ts"
import * as Operations from "../../../services/admin/BlockListOperations.ts"
import { body, field } from "../../../services/resources/BodyFields.ts"
import { ChangeErrors, ReadAccess, WriteAccess } from "../Access.ts"
import { AddressRangeText, rangeProblem } from "../Fields.ts"
import { pageOf } from "../Page.ts"

const range = { range: field("range", AddressRangeText, rangeProblem, "An address or a range.") }

const list = HttpApiEndpoint.get("list", "/blocklist")
  .addSuccess(pageOf(BlockedRange, "BlockedRanges"))
  .middleware(ReadAccess)
  .annotate(OpenApi.Summary, "List the addresses that are refused, all at once")

const add = HttpApiEndpoint.post("add", "/blocklist")
  .setPayload(body(range))
  .addSuccess(BlockedRange, { status: 201 })
  .middleware(WriteAccess)
  .annotate(OpenApi.Summary, Operations.add.summary)

const remove = HttpApiEndpoint.del("remove", "/blocklist")
  .setUrlParams(Schema.Struct(range))
  .addSuccess(BlockedRange)
  .middleware(WriteAccess)
  .annotate(OpenApi.Summary, Operations.remove.summary)

export const BlockListGroup = HttpApiGroup.make("blocklist").add(list).add(add).add(remove).addError(ChangeErrors)
