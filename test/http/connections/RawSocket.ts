import { connect, type Socket } from "node:net"
import { Effect } from "effect"
import { ServedGateway } from "../../harness/gateway/ServedGateway.ts"

/** An answer as its bytes say, for requests that no client library would send. */
export interface RawAnswer {
  readonly status: number
  readonly headers: Headers
  readonly text: string
}

export interface RawConnection {
  readonly socket: Socket
  /** Everything received so far. */
  readonly received: () => string
  readonly write: (text: string | Uint8Array) => Effect.Effect<void>
  /** Everything received once the gateway has closed the connection. */
  readonly closed: Effect.Effect<string>
  /** Waits for the whole answers up to this one, counted from 1, and gives it. */
  readonly answer: (nth: number) => Effect.Effect<RawAnswer>
}

/** One whole answer at the start of the text, and what follows it. Only bodies of known length. */
const split = (text: string): { readonly answer: RawAnswer; readonly rest: string } | undefined => {
  const end = text.indexOf("\r\n\r\n")
  if (end < 0) return undefined
  const [statusLine = "", ...lines] = text.slice(0, end).split("\r\n")
  const headers = new Headers(
    lines.map((line): [string, string] => [line.slice(0, line.indexOf(":")), line.slice(line.indexOf(":") + 1).trim()])
  )
  const status = Number(/^HTTP\/1\.1 (\d{3}) /.exec(statusLine)?.[1])
  if (status === 100) return split(text.slice(end + 4))
  const length = Number(headers.get("content-length") ?? 0)
  const body = text.slice(end + 4)
  if (body.length < length) return undefined
  return { answer: { status, headers, text: body.slice(0, length) }, rest: body.slice(length) }
}

/** Every whole answer in what came over a connection. */
export const answersIn = (text: string): ReadonlyArray<RawAnswer> => {
  const found = split(text)
  return found === undefined ? [] : [found.answer, ...answersIn(found.rest)]
}

/** A connection to an address, gone with the scope. */
export const openTo = (url: string) =>
  Effect.acquireRelease(
    Effect.async<Socket>((resume) => {
      const { hostname, port } = new URL(url)
      const socket = connect({ host: hostname, port: Number(port), allowHalfOpen: true })
      socket.once("connect", () => resume(Effect.succeed(socket)))
    }),
    (socket) => Effect.sync(() => socket.destroy())
  ).pipe(
    Effect.map((socket): RawConnection => {
      let received = ""
      socket.setEncoding("latin1").on("data", (text: string) => (received += text))
      // A gateway that closes on what it has not read resets the connection; what it said before counts.
      socket.on("error", () => {})
      const isOver = () => socket.closed || socket.readableEnded
      const until = <A>(what: string, look: () => A | undefined) =>
        Effect.async<A>((resume) => {
          const check = () => {
            const seen = look()
            if (seen === undefined) return
            socket.off("data", check).off("end", check).off("close", check)
            resume(Effect.succeed(seen))
          }
          socket.on("data", check).on("end", check).on("close", check)
          check()
        }).pipe(
          Effect.timeoutFail({
            duration: "10 seconds",
            onTimeout: () => new Error(`no ${what}, only: ${received.slice(0, 500)}`)
          }),
          Effect.orDie
        )
      return {
        socket,
        received: () => received,
        write: (text) => Effect.sync(() => socket.write(text)),
        closed: until("end of the connection", () => (isOver() ? received : undefined)),
        answer: (nth) => until(`answer ${nth}`, () => answersIn(received)[nth - 1])
      }
    })
  )

/** A connection to the gateway. */
export const open = Effect.flatMap(ServedGateway, ({ url }) => openTo(url))

/** The only answer to what is sent over a connection of its own. */
export const ask = (text: string | Uint8Array) =>
  Effect.gen(function* () {
    const connection = yield* open
    yield* connection.write(text)
    return yield* connection.answer(1)
  }).pipe(Effect.scoped)
