import { Effect } from "effect"
import { type AddressRange, BlockedRange, BlockList } from "../access/BlockList.ts"
import { auditResource, operation } from "./AdminOperation.ts"

const ranges = auditResource({
  name: "blocklist",
  record: BlockedRange,
  find: (_, range) =>
    Effect.flatMap(BlockList, ({ list }) => Effect.map(list, (all) => all.find(({ id }) => id === range)))
})

export const add = operation("Block an address or range", (range: AddressRange) =>
  ranges.change("add", range, {}, () => Effect.flatMap(BlockList, ({ add }) => add(range)))
)

export const remove = operation("Unblock exactly this address or range", (range: AddressRange) =>
  ranges.change("remove", range, {}, () => Effect.flatMap(BlockList, ({ remove }) => remove(range)))
)
