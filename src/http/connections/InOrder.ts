import type { IncomingMessage, ServerResponse } from "node:http"
import type { Socket } from "node:net"

type Receive = (request: IncomingMessage, response: ServerResponse) => void

/** Node goes on parsing while requests wait. */
const maxWaiting = 100

interface Order {
  latest: ServerResponse
  waiting: number
}

/**
 * Receives a request once the answers to earlier ones of its connection are complete, since no client gets it sooner. Node
 * hands over all requests of a chunk at once: a few connections with hundreds of requests each would hold up everybody else
 * for seconds. If too many wait, the connection is closed. What its client does not wait for is never received.
 */
export const inOrder = (receive: Receive): Receive => {
  const orders = new WeakMap<Socket, Order>()
  return (request, response) => {
    const { socket } = request
    const order = orders.get(socket)
    if (order === undefined) {
      orders.set(socket, { latest: response, waiting: 0 })
      return receive(request, response)
    }
    const before = order.latest
    order.latest = response
    if (before.writableFinished || before.destroyed) return receive(request, response)
    if (order.waiting === maxWaiting) return void socket.destroy()
    order.waiting += 1
    before.once("close", () =>
      setImmediate(() => {
        order.waiting -= 1
        if (!request.complete || !request.destroyed) receive(request, response)
      })
    )
  }
}
