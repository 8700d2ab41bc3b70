import net from "node:net"
import { Effect } from "effect"
import { listen } from "../harness/Listening.ts"
import { FrontendMessages } from "./FrontendMessages.ts"

/**
 * `delay`: every byte comes so many milliseconds later. `stall`: bytes wait until the mode changes. `swallow`: bytes
 * are taken and never passed on, and the connection stays mute afterwards. `cut`: connections break and none is taken.
 */
export type Mode =
  | { readonly kind: "pass" | "stall" | "swallow" | "cut" }
  | { readonly kind: "delay"; readonly millis: number }

export interface FaultProxy {
  readonly port: number
  readonly set: (mode: Mode) => void
  /** Ends one direction of every connection. */
  readonly halfClose: (end: "client" | "server") => void
  /**
   * From now on a PostgreSQL statement whose text matches reaches the server, and its connection breaks instead of
   * passing the answer on. Undefined ends it.
   */
  readonly loseAnswers: (match: RegExp | undefined, onLost?: () => void) => void
}

/** Bytes on their way to a socket, in order. */
interface Direction {
  readonly to: net.Socket
  readonly delayed: Array<Buffer>
}

interface Pair {
  readonly client: net.Socket
  readonly server: net.Socket
  readonly messages: FrontendMessages
  isMute: boolean
  isDoomed: boolean
}

/** A TCP proxy with faults on demand. */
export const make = Effect.fnUntraced(function* (target: net.NetConnectOpts) {
  let mode: Mode = { kind: "pass" }
  let lost: { readonly match: RegExp; readonly onLost: () => void } | undefined
  let stalled: Array<() => void> = []
  const pairs = new Set<Pair>()

  const breakPair = ({ client, server }: Pair) => {
    client.destroy()
    server.destroy()
  }
  const write = (to: net.Socket, chunk: Buffer | undefined) => {
    if (chunk !== undefined && to.writable) to.write(chunk)
  }

  const forward = (pair: Pair, { delayed, to }: Direction, chunk: Buffer) => {
    if (mode.kind === "swallow") pair.isMute = true
    if (pair.isMute || mode.kind === "cut") return
    if (mode.kind === "stall") stalled.push(() => write(to, chunk))
    else if (mode.kind === "delay" || delayed.length > 0) {
      delayed.push(chunk)
      setTimeout(() => write(to, delayed.shift()), mode.kind === "delay" ? mode.millis : 0)
    } else write(to, chunk)
  }

  const connect = (client: net.Socket) => {
    if (mode.kind === "cut") return client.destroy()
    const server = net.connect({ ...target, allowHalfOpen: true })
    const pair: Pair = { client, server, messages: new FrontendMessages(), isMute: false, isDoomed: false }
    const [out, back]: [Direction, Direction] = [
      { to: server, delayed: [] },
      { to: client, delayed: [] }
    ]
    pairs.add(pair)
    client.on("data", (chunk) => {
      const texts = pair.messages.read(chunk)
      if (lost !== undefined && texts.some((text) => lost?.match.test(text))) pair.isDoomed = true
      forward(pair, out, chunk)
    })
    server.on("data", (chunk) => {
      if (!pair.isDoomed) return forward(pair, back, chunk)
      breakPair(pair)
      lost?.onLost()
    })
    for (const [from, to] of [
      [client, server],
      [server, client]
    ] as const) {
      from.on("end", () => pair.isMute || to.end())
      from.on("error", () => {})
      from.on("close", () => {
        if (from === client || !pair.isMute) to.destroy()
        if (client.destroyed && server.destroyed) pairs.delete(pair)
      })
    }
    return undefined
  }

  const port = yield* Effect.orDie(listen(net.createServer({ allowHalfOpen: true }, connect)))
  yield* Effect.addFinalizer(() => Effect.sync(() => pairs.forEach(breakPair)))
  const proxy: FaultProxy = {
    port,
    set: (next) => {
      mode = next
      if (next.kind === "cut") pairs.forEach(breakPair)
      const waiting = stalled
      stalled = []
      if (next.kind !== "cut") for (const send of waiting) send()
    },
    halfClose: (end) => {
      for (const pair of pairs) pair[end].end()
    },
    loseAnswers: (match, onLost = () => {}) => {
      lost = match === undefined ? undefined : { match, onLost }
      if (match === undefined) for (const pair of pairs) pair.isDoomed = false
    }
  }
  return proxy
})
