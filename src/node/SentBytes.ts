import type { Socket } from "node:net"

const numberOf = (holder: unknown, name: string): number => {
  const value: unknown = typeof holder === "object" && holder !== null ? Reflect.get(holder, name) : undefined
  return typeof value === "number" ? value : 0
}

/**
 * Returns how many bytes of a socket's output the system has accepted. Node's own counters change once per chunk, so a slow
 * reader of one large answer would look like one that reads nothing. Undocumented properties show the progress. Needed by
 * Node 20.20 and 24.9.
 */
export const sentBytes = (socket: Socket): number =>
  numberOf(socket, "_bytesDispatched") - numberOf(Reflect.get(socket, "_handle"), "writeQueueSize")
