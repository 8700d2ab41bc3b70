import { isIPv4 } from "node:net"
import ipaddr from "ipaddr.js"

const withoutPort = (entry: string): string => {
  const bracketed = /^\[([^\]]+)\](?::\d+)?$/.exec(entry)
  if (bracketed?.[1] !== undefined) return bracketed[1]
  const [host = "", port, ...rest] = entry.split(":")
  return port !== undefined && rest.length === 0 ? host : entry
}

/** One spelling per address: `::ffff:a.b.c.d` is the IPv4 address. Undefined for anything that is no address. */
const normalise = (entry: string): string | undefined => {
  // What nearly every socket says, and has one spelling anyway.
  if (isIPv4(entry)) return entry
  const text = withoutPort(entry.trim())
  return ipaddr.isValid(text) ? ipaddr.process(text).toString() : undefined
}

/** Only the entries that our own proxies wrote are believed; a broken header means the socket's address. */
export const clientAddress = (
  socketAddress: string | undefined,
  forwardedFor: string | ReadonlyArray<string> | undefined,
  trustedProxies: number
): string => {
  const direct = normalise(socketAddress ?? "") ?? "unknown"
  if (trustedProxies === 0 || forwardedFor === undefined) return direct
  const entries = (typeof forwardedFor === "string" ? forwardedFor : forwardedFor.join(",")).split(",")
  return normalise(entries[Math.max(0, entries.length - trustedProxies)] ?? "") ?? direct
}
