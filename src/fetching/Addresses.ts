import { Resolver } from "node:dns/promises"
import { Effect } from "effect"
import ipaddr from "ipaddr.js"
import type { AddressRange } from "../services/access/AddressRange.ts"

export type Address = ipaddr.IPv4 | ipaddr.IPv6

const globalUnicast = ipaddr.IPv6.parseCIDR("2000::/3")

/** An IPv4 address mapped into IPv6 counts as IPv4; undefined for zone ids and ambiguous forms. */
export const parseAddress = (text: string): Address | undefined => {
  if (ipaddr.IPv4.isValidFourPartDecimal(text)) return ipaddr.IPv4.parse(text)
  // The parser takes `::10.0.0.1` for 10.0.0.1, which the system does not.
  if (/%|^::\d+\./.test(text) || !ipaddr.IPv6.isValid(text)) return undefined
  const address = ipaddr.IPv6.parse(text)
  return address.isIPv4MappedAddress() ? address.toIPv4Address() : address
}

export const canonical = (address: Address): string => address.toNormalizedString()

/** False for IPv6 that carries an IPv4 address elsewhere (NAT64, 6to4). */
export const isPublic = (address: Address): boolean =>
  address.range() === "unicast" && (address instanceof ipaddr.IPv4 || address.match(globalUnicast))

export const within = (ranges: ReadonlyArray<AddressRange>): ((address: Address) => boolean) => {
  const parsed = ranges.map((range) => ipaddr.parseCIDR(range))
  return (address) => parsed.some(([base, bits]) => base.kind() === address.kind() && address.match(base, bits))
}

export type Names = (host: string) => Effect.Effect<ReadonlyArray<string>, Error>

const firstTryMillis = 1_000
const tries = 2

const special = /(^|\.)(localhost|localdomain|local|internal|intranet|private|corp|home|lan|home\.arpa)$/

export const isPrivateName = (host: string): boolean => {
  const name = host.toLowerCase().replace(/\.$/, "")
  return !name.includes(".") || special.test(name)
}

/** Asks DNS directly: the system's look-up uses the few threads that connections to providers share. */
export const makeNames =
  (servers?: ReadonlyArray<string>): Names =>
  (host) =>
    Effect.flatMap(
      Effect.promise((signal) => {
        const resolver = new Resolver({ timeout: firstTryMillis, tries })
        if (servers !== undefined) resolver.setServers(servers)
        signal.addEventListener("abort", () => resolver.cancel())
        return Promise.allSettled([resolver.resolve4(host), resolver.resolve6(host)])
      }),
      (answers) => {
        const addresses = answers.flatMap((answer) => (answer.status === "fulfilled" ? answer.value : []))
        return addresses.length > 0 ? Effect.succeed(addresses) : Effect.fail(new Error("the name has no address"))
      }
    )
