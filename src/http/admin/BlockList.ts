import { HttpApiBuilder, HttpApiEndpoint, HttpApiGroup, OpenApi } from "@effect/platform"
import { Effect, Schema } from "effect"
import { InvalidRequest } from "../../domain/Failure.ts"
import { isSweeping } from "../../services/access/AddressRange.ts"
import { BlockedRange, BlockList } from "../../services/access/BlockList.ts"
import * as Operations from "../../services/admin/BlockListOperations.ts"
import { body, field } from "../../services/resources/BodyFields.ts"
import { adminApiOf, ChangeErrors, ReadAccess, WriteAccess } from "./Access.ts"
import { addressRange, notFound, recordOf } from "./Fields.ts"
import { pageOf, wholePage } from "./Page.ts"

const range = { range: field("range", ...addressRange, "An address or a range.") }

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

export const BlockListHandlers = HttpApiBuilder.group(
  adminApiOf(BlockListGroup),
  "blocklist",
  Effect.fnUntraced(function* (handlers) {
    const { list } = yield* BlockList
    return handlers
      .handle("list", () => Effect.map(list, wholePage))
      .handle("add", ({ payload: { range } }) =>
        Effect.gen(function* () {
          if (!isSweeping(range)) return yield* recordOf(Operations.add.run(range))
          const message = `${range} holds the gateway's own addresses or is very wide: use gateway blocklist add --force.`
          return yield* new InvalidRequest({ message, param: "range" })
        })
      )
      .handle("remove", ({ urlParams: { range } }) =>
        recordOf(Operations.remove.run(range)).pipe(Effect.catchTags({ RangeNotBlocked: notFound }))
      )
  })
)
