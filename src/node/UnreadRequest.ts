import type { IncomingMessage } from "node:http"

/**
 * Lets the rest of a body run out where @effect/platform-node stops reading it: the platform destroys the request, and
 * Node its connection, before the response is sent. Needed by Node 20.20 and 24.9, and by @effect/platform-node 0.108.
 */
export const keepConnectionOfUnread = (request: IncomingMessage): void => {
  const destroy = request.destroy.bind(request)
  const stop = (error?: Error) =>
    error === undefined && !request.readableEnded ? request.removeAllListeners("data").resume() : destroy(error)
  Object.assign(request, { destroy: stop })
}
