import type { Socket } from "node:net"

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
