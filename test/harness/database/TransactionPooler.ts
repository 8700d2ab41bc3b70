/** `startPooler` starts a pooler in transaction mode, like PgBouncer, in front of a database. */

import net from "node:net"
import path from "node:path"
import { Effect } from "effect"
import { listen } from "../Listening.ts"

/** Calls back with the type and the bytes of each complete message. A client's first message has no type. */
const readMessages = (onMessage: (type: string, bytes: Buffer) => void, hasType: () => boolean) => {
  let rest = Buffer.alloc(0)
  return (chunk: Buffer) => {
    rest = Buffer.concat([rest, chunk])
    for (;;) {
      const head = hasType() ? 1 : 0
      if (rest.length < head + 4) return
      const length = head + rest.readInt32BE(head)
      if (rest.length < length) return
      const message = rest.subarray(0, length)
      rest = rest.subarray(length)
      onMessage(head === 0 ? "" : String.fromCharCode(message[0] ?? 0), message)
    }
  }
}

const isIdle = (readyForQuery: Buffer) => readyForQuery[5] === "I".charCodeAt(0)

interface Session {
  readonly socket: net.Socket
  client: net.Socket | undefined
}

/**
 * Assigns a session of the server to a client for one transaction, the last used one first. Accepts plain connections
 * of one user without a password.
 */
export const startPooler = Effect.fnUntraced(function* (databaseUrl: string) {
  const url = new URL(databaseUrl)
  const host = url.searchParams.get("host")
  const target =
    host === null ? { host: url.hostname, port: Number(url.port || 5432) } : { path: path.join(host, ".s.PGSQL.5432") }
  const idle: Array<Session> = []
  const sockets = new Set<net.Socket>()
  const keep = (socket: net.Socket) => {
    sockets.add(socket)
    return socket.on("error", () => {}).on("close", () => sockets.delete(socket))
  }

  /** `onGreeting` receives the server's messages to a new session, up to the first ReadyForQuery. */
  const connect = (startup: Buffer, onGreeting: (session: Session, greeting: Buffer) => void) => {
    const session: Session = { socket: keep(net.connect(target)), client: undefined }
    let greeting: Buffer | undefined = Buffer.alloc(0)
    session.socket.write(startup)
    const onMessage = (type: string, bytes: Buffer) => {
      if (greeting !== undefined) {
        greeting = Buffer.concat([greeting, bytes])
        if (type !== "Z") return
        onGreeting(session, greeting)
        greeting = undefined
        return
      }
      session.client?.write(bytes)
      if (type !== "Z" || !isIdle(bytes)) return
      session.client = undefined
      idle.push(session)
    }
    session.socket.on(
      "data",
      readMessages(onMessage, () => true)
    )
  }

  const server = net.createServer((client) => {
    keep(client)
    let startup: Buffer | undefined
    let lent: Session | undefined
    const send = (session: Session, bytes: Buffer) => {
      session.client = client
      lent = session
      session.socket.write(bytes)
    }
    const waiting: Array<Buffer> = []
    const forward = (bytes: Buffer) => {
      if (lent?.client === client) return void lent.socket.write(bytes)
      const free = idle.pop()
      if (free !== undefined) return send(free, bytes)
      waiting.push(bytes)
      if (waiting.length > 1 || startup === undefined) return
      connect(startup, (session) => send(session, Buffer.concat(waiting.splice(0))))
    }
    const onMessage = (type: string, bytes: Buffer) => {
      if (startup === undefined) {
        startup = Buffer.from(bytes)
        return connect(startup, (session, greeting) => {
          idle.push(session)
          client.write(greeting)
        })
      }
      if (type === "X") return void client.end()
      forward(bytes)
    }
    client.on(
      "data",
      readMessages(onMessage, () => startup !== undefined)
    )
    // Other clients cannot use a session inside a transaction.
    client.on("close", () => lent?.client === client && lent.socket.destroy())
  })
  yield* Effect.addFinalizer(() =>
    Effect.sync(() => {
      for (const socket of sockets) socket.destroy()
    })
  )
  url.searchParams.delete("host")
  url.host = `127.0.0.1:${yield* Effect.orDie(listen(server))}`
  return url.href
})
