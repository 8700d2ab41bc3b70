import { SqlClient } from "@effect/sql"
import { Brand, Context, Data, Effect, Layer, Schema } from "effect"
import ipaddr from "ipaddr.js"
import { UnixSeconds } from "../resources/ResourceRecord.ts"
import { recordsOf } from "../sql/SqlStatement.ts"

/** In canonical form, with host bits cleared: `192.168.1.0/24`, `2001:db8::/32`, `203.0.113.9/32`. */
export type AddressRange = string & Brand.Brand<"AddressRange">
const AddressRange = Brand.nominal<AddressRange>()

const length = /^\d{1,3}$/
const mappedBits = 96

const v4 = (address: string, bits: number) =>
  bits > 32 ? undefined : AddressRange(`${ipaddr.IPv4.networkAddressFromCIDR(`${address}/${bits}`).toString()}/${bits}`)

const v6 = (address: string, bits: number) => {
  if (bits > 128) return undefined
  const parsed = ipaddr.IPv6.parse(address)
  return parsed.isIPv4MappedAddress() && bits >= mappedBits
    ? v4(parsed.toIPv4Address().toString(), bits - mappedBits)
    : AddressRange(`${ipaddr.IPv6.networkAddressFromCIDR(`${address}/${bits}`).toRFC5952String()}/${bits}`)
}

/** Whether a host name or an address, which may be in brackets, always means this machine. */
export const isLoopbackHost = (host: string): boolean => {
  const name = host.replace(/^\[(.*)\]$/, "$1").toLowerCase()
  return name === "localhost" || (ipaddr.isValid(name) && ipaddr.process(name).range() === "loopback")
}

const minBits = { ipv4: 8, ipv6: 16 }

/** Whether the range is likely to block everyone, or includes this machine. */
export const isTooWide = (range: AddressRange): boolean => {
  const [network, bits] = ipaddr.parseCIDR(range)
  const [loopback, loopbackBits] = ipaddr.parseCIDR(network.kind() === "ipv4" ? "127.0.0.0/8" : "::1/128")
  const common = Math.min(bits, loopbackBits)
  return bits < minBits[network.kind()] || network.match(loopback, common)
}

export const rangeForms = "an address or a range such as 203.0.113.0/24 or 2001:db8::/32"

/** Parses an address or a range. An IPv4-mapped IPv6 address becomes IPv4. Returns undefined for short and octal forms. */
export const parseRange = (text: string): AddressRange | undefined => {
  const [address = "", bits, ...rest] = text.trim().split("/")
  if (rest.length > 0 || (bits !== undefined && !length.test(bits))) return undefined
  if (ipaddr.IPv4.isValidFourPartDecimal(address)) return v4(address, Number(bits ?? 32))
  const isV6 = ipaddr.IPv6.isValid(address) && !address.includes("%")
  return isV6 ? v6(address, Number(bits ?? 128)) : undefined
}

export const BlockedRange = Schema.Struct({
  id: Schema.String,
  cidr: Schema.String,
  created_at: UnixSeconds
}).annotations({ identifier: "BlockedRange" })
export type BlockedRange = typeof BlockedRange.Type

class RangeNotBlocked extends Data.TaggedError("RangeNotBlocked")<{ readonly range: AddressRange }> {
  override get message() {
    return `${this.range} is not on the block list.`
  }
}

/** Changes apply on every instance within a second. */
export class BlockList extends Context.Tag("gateway/BlockList")<
  BlockList,
  {
    /** Returns the existing entry if the range is on the list already. */
    readonly add: (range: AddressRange) => Effect.Effect<BlockedRange>
    /** Removes the entry with exactly this range. Entries that contain it stay. */
    readonly remove: (range: AddressRange) => Effect.Effect<BlockedRange, RangeNotBlocked>
    /** Returns the entries ordered by address, IPv4 first. */
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
          const [addedRange] = yield* records(sql`
            INSERT INTO blocklist (range) VALUES (${range}::cidr)
            ON CONFLICT (range) DO UPDATE SET created_at = blocklist.created_at RETURNING ${columns}`)
          return addedRange ?? (yield* Effect.dieMessage("no range was added"))
        }),
        remove: Effect.fn("BlockList.remove")(function* (range: AddressRange) {
          const [removedRange] = yield* records(
            sql`DELETE FROM blocklist WHERE range = ${range}::cidr RETURNING ${columns}`
          )
          return removedRange ?? (yield* new RangeNotBlocked({ range }))
        }),
        list: Effect.withSpan(records(sql`SELECT ${columns} FROM blocklist ORDER BY blocklist.range`), "BlockList.list")
      })
    })
  )
}
