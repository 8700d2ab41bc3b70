import { randomInt } from "node:crypto"
import { createServer } from "node:net"
import { Effect, Schedule } from "effect"

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
