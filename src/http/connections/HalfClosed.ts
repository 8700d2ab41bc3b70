import type { Connection } from "./Connections.ts"

/** Emitted on a response whose head is sent, for whoever can write something to it that has no meaning. */
export const probe = Symbol("gateway/http/probe")

const startOfHead = Buffer.from("HTTP/1.1 ")
const probeMillis = [1, 4, 16, 64, 256, 1024, 4096, 16_384]

/**
 * A client that shuts down its sending side may still read; one that closed its connection sends the same FIN, and
 * answers the first byte that it gets with a reset, which the second write meets. Before the head those bytes are
 * the start of the status line, the same for every answer, which is then left out of the head.
 */
export const watchHalfClosed = (connection: Connection): void => {
  const { socket } = connection
  const delays = probeMillis.values()
  let sent = 0

  const write = socket.write.bind(socket)

  const writeRest = (
    head: string | Uint8Array,
    encoding?: BufferEncoding,
    callback?: (error?: Error | null) => void
  ) => {
    Reflect.deleteProperty(socket, "write")
    const rest = typeof head === "string" ? head.slice(sent) : head.subarray(sent)
    sent = 0
    return write(rest, encoding, callback)
  }
  const sendEarly = () => {
    if (sent === startOfHead.length) return
    if (sent === 0) Object.assign(socket, { write: writeRest })
    write(startOfHead.subarray(sent, sent + 1))
    sent += 1
  }
  const check = () => {
    const response = connection.latest?.response
    if (response === undefined || response.writableFinished || !socket.writable) return
    if (response.headersSent) response.emit(probe)
    else if (response.socket !== null) sendEarly()
    const { value } = delays.next()
    if (value !== undefined) setTimeout(check, value).unref()
  }
  check()
}
