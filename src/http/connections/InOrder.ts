import type { IncomingMessage, ServerResponse } from "node:http"
import type { Socket } from "node:net"

type Receive = (request: IncomingMessage, response: ServerResponse) => void

/** Node parses more requests while some wait. */
const maxWaiting = 100

interface Order {
  latest: ServerResponse
  waiting: number
}

/**
 * Receives a request after the answers to earlier ones of its connection: Node hands over all requests of a chunk at once,
 * and hundreds of pipelined requests on a few connections would delay all other clients for seconds. If too many wait, the
 * connection is closed. A request whose client leaves before its turn is never received.
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
