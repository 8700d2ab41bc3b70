import type { Connection } from "./Connections.ts"

export const probe = Symbol("gateway/http/probe")

const startOfHead = Buffer.from("HTTP/1.1 ")
const probeMillis = [1, 4, 16, 64, 256, 1024, 4096, 16_384]

/** A client that closed resets at our second write, a half-closed one reads on; the probe is the status line's start. */
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
