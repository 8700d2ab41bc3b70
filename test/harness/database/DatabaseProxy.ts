/** `proxyTo` starts a proxy in front of a database. It can be frozen or cut, and can refuse new connections. */

import net from "node:net"
import path from "node:path"
import { Effect } from "effect"
import { listen } from "../Listening.ts"

/** The error of a full pooler. Its first byte also answers a request for TLS. */
const poolerIsFull = Buffer.from(
  ["SFATAL", "VFATAL", "C08P01", "Mno more connections allowed (max_client_conn)", ""]
    .map((text) => `${text}\0`)
    .join("")
)
const refusal = Buffer.alloc(5 + poolerIsFull.length)
refusal.write("E")
refusal.writeInt32BE(4 + poolerIsFull.length, 1)
poolerIsFull.copy(refusal, 5)

/**
 * Starts a TCP proxy in front of a database, and returns the URL that leads through it. While it is frozen, it reads
 * bytes but forwards none. While it is cut, connections break immediately. While it is full, it refuses new connections
 * or does not respond to them.
 */
export const proxyTo = Effect.fnUntraced(function* (databaseUrl: string) {
  const url = new URL(databaseUrl)
  const host = url.searchParams.get("host")
  const target =
    host === null ? { host: url.hostname, port: Number(url.port || 5432) } : { path: path.join(host, ".s.PGSQL.5432") }
  let frozen = false
  let isCut = false
  let full: "refusing" | "silent" | undefined
  let trap: { readonly text: string; readonly when: "before" | "after" } | undefined
  const sockets = new Set<net.Socket>()
  const cut = () => {
    isCut = true
    for (const socket of sockets) socket.destroy()
  }
  const pass = (from: net.Socket, to: net.Socket) => {
    sockets.add(from)
    from.on("data", (chunk) => frozen || isCut || to.write(chunk))
    from.on("error", () => {})
    from.on("close", () => {
      sockets.delete(from)
      to.destroy()
    })
  }
  const server = net.createServer((client) => {
    if (isCut) {
      client.destroy()
      return
    }
    client.on("error", () => {})
    if (full === "silent") return
    if (full === "refusing") {
      client.end(refusal)
      return
    }
    const upstream = net.connect(target)
    client.on("data", (chunk) => {
      if (trap === undefined || !chunk.includes(trap.text)) return
      if (trap.when === "before") cut()
      else upstream.prependOnceListener("data", cut)
      trap = undefined
    })
    pass(client, upstream)
    pass(upstream, client)
  })
  url.searchParams.delete("host")
  url.host = `127.0.0.1:${yield* Effect.orDie(listen(server))}`
  return {
    url: url.href,
    freeze: Effect.sync(() => {
      frozen = true
    }),
    thaw: Effect.sync(() => {
      frozen = false
    }),
    cut: Effect.sync(cut),
    mend: Effect.sync(() => {
      isCut = false
    }),
    isCut: Effect.sync(() => isCut),
    fill: (how: "refusing" | "silent") =>
      Effect.sync(() => {
        full = how
      }),
    empty: Effect.sync(() => {
      full = undefined
    }),
    /** Cuts the connection when a client sends the text: before the server receives it, or when the server responds. */
    cutAt: (text: string, when: "before" | "after") =>
      Effect.sync(() => {
        trap = { text, when }
      })
  }
})
