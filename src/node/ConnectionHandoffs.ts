import type { Worker } from "node:cluster"
import { Option, Predicate, Schema } from "effect"

const decodeHandoff = Schema.decodeUnknownOption(
  Schema.Struct({ cmd: Schema.Literal("NODE_CLUSTER"), act: Schema.Literal("newconn"), seq: Schema.Number })
)
const decodeAnswer = Schema.decodeUnknownOption(
  Schema.Struct({ cmd: Schema.Literal("NODE_CLUSTER"), ack: Schema.Number })
)

const close = (handle: unknown) => {
  if (Predicate.hasProperty(handle, "close") && Predicate.isFunction(handle.close)) handle.close()
}

/**
 * Closes the connections that were on their way to a worker when it died. Node forgets them, so that their clients
 * would wait without end; its `SCHED_NONE` would spread connections unevenly. Needed by Node 20.20 and 24.9.
 */
export const closeLostHandoffs = (worker: Worker): void => {
  const handoffs = new Map<number, unknown>()
  worker.process.send = new Proxy(worker.process.send.bind(worker.process), {
    apply: (send, self, args) => {
      const [message, handle]: ReadonlyArray<unknown> = args
      if (handle !== undefined) {
        Option.map(decodeHandoff(message), ({ seq }) => handoffs.set(seq, handle))
      }
      return Reflect.apply(send, self, args)
    }
  })
  worker.process.on("internalMessage", (message: unknown) => {
    Option.map(decodeAnswer(message), ({ ack }) => handoffs.delete(ack))
  })
  worker.process.on("exit", () => {
    for (const handle of handoffs.values()) close(handle)
    handoffs.clear()
  })
}
