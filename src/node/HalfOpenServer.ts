import type { Server } from "node:http"

/**
 * Lets a client that has shut down its sending side still be answered: Node's HTTP server ends such a connection at
 * once, and only this undocumented property prevents it. Needed by Node 20.20 and 24.9.
 */
export const allowHalfOpen = (server: Server): void => {
  Object.assign(server, { httpAllowHalfOpen: true })
}
