import { Brand } from "effect"
import ipaddr from "ipaddr.js"

/** Canonical, host bits cleared: `192.168.1.0/24`, `2001:db8::/32`, `203.0.113.9/32`. */
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

/** Whether a host name or address, bracketed or not, always means this machine. */
export const isLoopbackHost = (host: string): boolean => {
  const name = host.replace(/^\[(.*)\]$/, "$1").toLowerCase()
  return name === "localhost" || (ipaddr.isValid(name) && ipaddr.process(name).range() === "loopback")
}

const widestBits = { ipv4: 8, ipv6: 16 }

/** Likely to block everyone, or this machine itself. */
export const isSweeping = (range: AddressRange): boolean => {
  const [network, bits] = ipaddr.parseCIDR(range)
  const [loopback, loopbackBits] = ipaddr.parseCIDR(network.kind() === "ipv4" ? "127.0.0.0/8" : "::1/128")
  const common = Math.min(bits, loopbackBits)
  return bits < widestBits[network.kind()] || network.match(loopback, common)
}

export const rangeForms = "an address or a range such as 203.0.113.0/24 or 2001:db8::/32"

/** An IPv4 address mapped into IPv6 counts as IPv4; undefined for short and octal forms. */
export const parseRange = (text: string): AddressRange | undefined => {
  const [address = "", bits, ...rest] = text.trim().split("/")
  if (rest.length > 0 || (bits !== undefined && !length.test(bits))) return undefined
  if (ipaddr.IPv4.isValidFourPartDecimal(address)) return v4(address, Number(bits ?? 32))
  const isV6 = ipaddr.IPv6.isValid(address) && !address.includes("%")
  return isV6 ? v6(address, Number(bits ?? 128)) : undefined
}
