import { Effect } from "effect"
import type { AddressRange } from "../access/AddressRange.ts"
import { BlockedRange, BlockList } from "../access/BlockList.ts"
import { auditResource, operation } from "./Operation.ts"

const ranges = auditResource({
  name: "blocklist",
  record: BlockedRange,
  find: (_, range) =>
    Effect.flatMap(BlockList, ({ list }) => Effect.map(list, (all) => all.find(({ id }) => id === range)))
})

export const add = operation("Refuse an address or a range", (range: AddressRange) =>
  ranges.change("add", range, {}, () => Effect.flatMap(BlockList, ({ add }) => add(range)))
)

export const remove = operation("Let exactly this address or range in again", (range: AddressRange) =>
  ranges.change("remove", range, {}, () => Effect.flatMap(BlockList, ({ remove }) => remove(range)))
)
