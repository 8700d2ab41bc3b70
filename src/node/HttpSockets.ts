import type { Server } from "node:http"
import type { Socket } from "node:net"

/**
 * Runs `close` where Node would destroy the connection after its last response, which resets it if the request's body
 * is not read to its end, so that the client may lose the response. `destroySoon` is what Node would have done. Needed
 * by Node 20.20 and 24.9.
 */
export const replaceDestroySoon = (socket: Socket, close: (destroySoon: () => void) => void): void => {
  const destroySoon = socket.destroySoon.bind(socket)
  Object.assign(socket, { destroySoon: () => close(destroySoon) })
}

/**
 * Lets a client that has shut down its sending side still be answered: Node's HTTP server ends such a connection at
 * once, and only this undocumented property prevents it. Needed by Node 20.20 and 24.9.
 */
export const allowHalfOpen = (server: Server): void => {
  Object.assign(server, { httpAllowHalfOpen: true })
}

/**
 * Returns a function that sends the next byte of `head`, with which the socket's next write begins: that write then
 * leaves out what was sent. Node tells a client that has gone from one that only shut down its sending side by a
 * failed write alone, and its responses cannot be begun by a part of their status line. Needed by Node 20.20 and 24.9.
 */
export const makeHeadStart = (socket: Socket, head: Uint8Array): (() => void) => {
  const write = socket.write.bind(socket)
  let sent = 0
  const writeRest = (
    text: string | Uint8Array,
    encoding?: BufferEncoding,
    callback?: (error?: Error | null) => void
  ) => {
    Reflect.deleteProperty(socket, "write")
    const rest = typeof text === "string" ? text.slice(sent) : text.subarray(sent)
    sent = 0
    return write(rest, encoding, callback)
  }
  return () => {
    if (sent === head.length) return
    if (sent === 0) Object.assign(socket, { write: writeRest })
    write(head.subarray(sent, sent + 1))
    sent += 1
  }
}

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
