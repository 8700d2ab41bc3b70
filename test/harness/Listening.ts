/** Servers of tests. `listen` serves until the scope closes, and `freePort` returns a port number in advance. */

import { randomInt } from "node:crypto"
import { createServer, type Server, type Socket } from "node:net"
import { Effect, Schedule } from "effect"

/** Listens until the scope closes, then destroys all connections. Returns the port. */
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

/** Uses a port below the range of automatically assigned ports, so no other test gets the same one. */
const port = Effect.suspend(() => {
  const candidate = randomInt(10_000, 30_000)
  return Effect.async<number, "taken">((resume) => {
    const server = createServer()
    server.once("error", () => resume(Effect.fail("taken")))
    server.listen(candidate, "127.0.0.1", () => server.close(() => resume(Effect.succeed(candidate))))
  })
})

/** Returns a free port, for a gateway whose links contain its own address, or that restarts at the same address. */
export const freePort = port.pipe(Effect.retry(Schedule.recurs(50)), Effect.orDie)
