import type { Socket } from "node:net"

/**
 * Runs `close` where Node would destroy the connection after its last response, which resets it if the request's body
 * is not read to its end, so that the client may lose the response. `destroySoon` is what Node would have done. Needed
 * by Node 20.20 and 24.9.
 */
export const replaceDestroySoon = (socket: Socket, close: (destroySoon: () => void) => void): void => {
  const destroySoon = socket.destroySoon.bind(socket)
  Object.assign(socket, { destroySoon: () => close(destroySoon) })
}
