import { makeHeadStart } from "../../node/HttpSockets.ts"
import type { Connection } from "./Connections.ts"

export const probe = Symbol("gateway/http/probe")

const startOfHead = Buffer.from("HTTP/1.1 ")
const probeMillis = [1, 4, 16, 64, 256, 1024, 4096, 16_384]

/** A client that closed resets at our second write, a half-closed one reads on; the probe is the status line's start. */
export const watchHalfClosed = (connection: Connection): void => {
  const { socket } = connection
  const delays = probeMillis.values()
  const sendEarly = makeHeadStart(socket, startOfHead)
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
