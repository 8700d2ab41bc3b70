import { SqlClient } from "@effect/sql"
import { Context, Data, Effect, Layer, Schema } from "effect"
import { UnixSeconds } from "../resources/Record.ts"
import { recordsOf } from "../sql/Statement.ts"
import type { AddressRange } from "./AddressRange.ts"

export const BlockedRange = Schema.Struct({
  id: Schema.String,
  cidr: Schema.String,
  created_at: UnixSeconds
}).annotations({ identifier: "BlockedRange" })
export type BlockedRange = typeof BlockedRange.Type

export class RangeNotBlocked extends Data.TaggedError("RangeNotBlocked")<{ readonly range: AddressRange }> {
  override get message() {
    return `${this.range} is not on the block list.`
  }
}

/** Instances follow within a second. */
export class BlockList extends Context.Tag("gateway/BlockList")<
  BlockList,
  {
    /** Returns the existing range where there is one. */
    readonly add: (range: AddressRange) => Effect.Effect<BlockedRange>
    /** Removes exactly this range; a wider one stays. */
    readonly remove: (range: AddressRange) => Effect.Effect<BlockedRange, RangeNotBlocked>
    /** By address, IPv4 first. */
    readonly list: Effect.Effect<ReadonlyArray<BlockedRange>>
  }
>() {
  static readonly layer = Layer.effect(
    BlockList,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const records = recordsOf(BlockedRange)
      const columns = sql.literal("range::text AS id, range::text AS cidr, created_at")

      return BlockList.of({
        add: Effect.fn("BlockList.add")(function* (range: AddressRange) {
          const [added] = yield* records(sql`
            INSERT INTO blocklist (range) VALUES (${range}::cidr)
            ON CONFLICT (range) DO UPDATE SET created_at = blocklist.created_at RETURNING ${columns}`)
          return added ?? (yield* Effect.dieMessage("no range was added"))
        }),
        remove: Effect.fn("BlockList.remove")(function* (range: AddressRange) {
          const [removed] = yield* records(sql`DELETE FROM blocklist WHERE range = ${range}::cidr RETURNING ${columns}`)
          return removed ?? (yield* new RangeNotBlocked({ range }))
        }),
        list: Effect.withSpan(records(sql`SELECT ${columns} FROM blocklist ORDER BY blocklist.range`), "BlockList.list")
      })
    })
  )
}
