import { HttpApiBuilder } from "@effect/platform"
import { Effect } from "effect"
import { InvalidRequest } from "../../../domain/Failure.ts"
import { isSweeping } from "../../../services/access/AddressRange.ts"
import { BlockList } from "../../../services/access/BlockList.ts"
import * as Operations from "../../../services/admin/BlockListOperations.ts"
import { AdminApi } from "../AdminApi.ts"
import { notFound, recordOf } from "../Fields.ts"
import { wholePage } from "../Page.ts"

export const BlockListHandlers = HttpApiBuilder.group(
  AdminApi,
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
