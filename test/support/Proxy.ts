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
      readonly close: Effect.Effect<void>
    }>((resume) => {
      let frozen = false
      let isCut = false
      const sockets = new Set<net.Socket>()
      const breakAll = () => {
        for (const socket of sockets) socket.destroy()
      }
      const pass = (from: net.Socket, to: net.Socket) => {
        sockets.add(from)
        from.on("data", (chunk) => frozen || to.write(chunk))
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
            cut: Effect.sync(() => {
              isCut = true
              breakAll()
            }),
            mend: Effect.sync(() => (isCut = false)),
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
