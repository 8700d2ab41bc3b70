import net from "node:net"
import { Effect } from "effect"

/**
 * A TCP door to a server. While it is frozen, bytes are taken and nothing is passed on; while it is cut, connections
 * break at once.
 */
export const make = (target: net.NetConnectOpts) =>
  Effect.acquireRelease(
    Effect.async<{
      readonly port: number
      readonly freeze: Effect.Effect<void>
      readonly thaw: Effect.Effect<void>
      readonly cut: Effect.Effect<void>
      readonly mend: Effect.Effect<void>
      readonly isCut: Effect.Effect<boolean>
      /** Cuts at the next bytes from a client that hold the text: before the server gets them, or at its answer. */
      readonly cutAt: (text: string, when: "before" | "after") => Effect.Effect<void>
      readonly close: Effect.Effect<void>
    }>((resume) => {
      let frozen = false
      let isCut = false
      let trap: { readonly text: string; readonly when: "before" | "after" } | undefined
      const sockets = new Set<net.Socket>()
      const breakAll = () => {
        for (const socket of sockets) socket.destroy()
      }
      const cut = () => {
        isCut = true
        breakAll()
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
      server.listen(0, "127.0.0.1", () => {
        const address = server.address()
        resume(
          Effect.succeed({
            port: typeof address === "object" && address !== null ? address.port : 0,
            freeze: Effect.sync(() => (frozen = true)),
            thaw: Effect.sync(() => (frozen = false)),
            cut: Effect.sync(cut),
            cutAt: (text, when) => Effect.sync(() => (trap = { text, when })),
            mend: Effect.sync(() => (isCut = false)),
            isCut: Effect.sync(() => isCut),
            close: Effect.sync(() => {
              server.close()
              breakAll()
            })
          })
        )
      })
    }),
    ({ close }) => close
  )
