/** Servers of tests: `listen` for as long as the scope lasts, and `freePort` where the number is needed before. */

import { randomInt } from "node:crypto"
import { createServer, type Server, type Socket } from "node:net"
import { Effect, Schedule } from "effect"

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

/** Below what systems give to whom asks for any port, so that no other test is given it meanwhile. */
const port = Effect.suspend(() => {
  const candidate = randomInt(10_000, 30_000)
  return Effect.async<number, "taken">((resume) => {
    const server = createServer()
    server.once("error", () => resume(Effect.fail("taken")))
    server.listen(candidate, "127.0.0.1", () => server.close(() => resume(Effect.succeed(candidate))))
  })
})

/** A port for a gateway whose links lead to itself, and that comes back where it was. */
export const freePort = port.pipe(Effect.retry(Schedule.recurs(50)), Effect.orDie)
