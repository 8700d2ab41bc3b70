import { Effect, Schema } from "effect"
import type { AddressRange } from "../access/AddressRange.ts"
import { type BlockedRange, BlockList } from "../access/BlockList.ts"
import { UnixSeconds } from "../resources/Record.ts"
import { Audit } from "./Audit.ts"

export const BlockedRangeRecord = Schema.Struct({
  id: Schema.String,
  cidr: Schema.String,
  created_at: UnixSeconds
}).annotations({ identifier: "BlockedRange" })
export type BlockedRangeRecord = typeof BlockedRangeRecord.Type

export const blockedRangeRecord = ({ createdAt, range }: BlockedRange): BlockedRangeRecord => ({
  id: range,
  cidr: range,
  created_at: createdAt
})

const changeOne = <E>(
  action: string,
  range: AddressRange,
  run: (blockList: typeof BlockList.Service) => Effect.Effect<BlockedRange, E>
) =>
  Effect.gen(function* () {
    const { change } = yield* Audit
    const blockList = yield* BlockList
    const find = Effect.map(blockList.list, (ranges) => {
      const present = ranges.find((one) => one.range === range)
      return present && blockedRangeRecord(present)
    })
    return yield* change({
      action: `blocklist.${action}`,
      input: {},
      target: range,
      record: BlockedRangeRecord,
      find: () => find,
      run: () => run(blockList),
      recordOf: blockedRangeRecord,
      targetOf: ({ id }) => id
    })
  })

export const blockRange = (range: AddressRange) => changeOne("add", range, ({ add }) => add(range))

export const unblockRange = (range: AddressRange) => changeOne("remove", range, ({ remove }) => remove(range))
