import type { Server, Socket } from "node:net"
import { Effect } from "effect"

/** Listens while the scope lasts, and breaks every connection at its end; the port. */
export const listen = (server: Server, at: { readonly port?: number; readonly address?: string } = {}) => {
  const open = new Set<Socket>()
  server.on("connection", (socket: Socket) => {
    open.add(socket)
    socket.on("error", () => undefined)
    socket.on("close", () => open.delete(socket))
  })
  return Effect.acquireRelease(
    Effect.async<number, Error>((resume) => {
      server.once("error", (error) => resume(Effect.fail(error)))
      server.listen(at.port ?? 0, at.address ?? "127.0.0.1", () => {
        const bound = server.address()
        resume(typeof bound === "object" && bound !== null ? Effect.succeed(bound.port) : Effect.dieMessage("no port"))
      })
    }),
    () =>
      Effect.async<void>((resume) => {
        server.close(() => resume(Effect.void))
        for (const socket of open) socket.destroy()
      })
  )
}
