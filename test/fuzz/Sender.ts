import { connect } from "node:net"
import { performance } from "node:perf_hooks"
import { type Hostile, secretMark } from "./Requests.ts"

export interface Answer {
  readonly status: number
  readonly headers: Headers
  readonly text: string
}

/** What became of a request. */
export type Result =
  | { readonly kind: "answer"; readonly answer: Answer; readonly millis: number }
  /** The connection ended without a whole answer. */
  | { readonly kind: "closed"; readonly received: string; readonly millis: number }
  | { readonly kind: "hang"; readonly received: string }
  /** The client left before there was one. */
  | { readonly kind: "left" }

/** The longest that an answer may take, in milliseconds. */
export const patience = 30_000

const unchunked = (text: string): string | undefined => {
  let rest = text
  let body = ""
  while (true) {
    const end = rest.indexOf("\r\n")
    const size = Number.parseInt(rest.slice(0, end), 16)
    if (end < 0 || Number.isNaN(size)) return undefined
    if (size === 0) return body
    body += rest.slice(end + 2, end + 2 + size)
    rest = rest.slice(end + 2 + size + 2)
  }
}

/** The first answer in what came over a connection; undefined while it is not whole. */
export const answerIn = (received: string, hasBody: boolean): Answer | undefined => {
  const end = received.indexOf("\r\n\r\n")
  const [statusLine = "", ...lines] = received.slice(0, Math.max(0, end)).split("\r\n")
  const status = Number(/^HTTP\/1\.1 (\d{3}) /.exec(statusLine)?.[1] ?? Number.NaN)
  if (end < 0 || Number.isNaN(status)) return undefined
  const rest = received.slice(end + 4)
  if (status === 100) return answerIn(rest, hasBody)
  const headers = new Headers(
    lines.map((line): [string, string] => [line.slice(0, line.indexOf(":")), line.slice(line.indexOf(":") + 1).trim()])
  )
  if (!hasBody) return { status, headers, text: "" }
  const whole =
    headers.get("transfer-encoding") === "chunked"
      ? unchunked(rest)
      : rest.slice(0, Number(headers.get("content-length")))
  if (whole === undefined || Buffer.byteLength(rest, "latin1") < Number(headers.get("content-length") ?? 0)) {
    return undefined
  }
  return { status, headers, text: Buffer.from(whole, "latin1").toString("utf8") }
}

/** The bytes of a request's head, with what a client adds by itself. */
export const headOf = ({ body, headers, method, target }: Hostile, host: string, secret: string): Buffer => {
  const isNamed = (name: string) => headers.some(([given]) => given === name)
  const added: ReadonlyArray<readonly [string, string]> = [
    ...(isNamed("host") ? [] : [["host", host] as const]),
    ...(isNamed("content-length") || isNamed("transfer-encoding") || body.length === 0
      ? []
      : [["content-length", String(body.length)] as const]),
    ["connection", "close"]
  ]
  const lines = [...headers, ...added].map(([name, value]) => `${name}: ${value.replaceAll(secretMark, secret)}`)
  return Buffer.from([`${method} ${target} HTTP/1.1`, ...lines, "", ""].join("\r\n"), "latin1")
}

/** Sends one request over a connection of its own. */
export const send = (url: string, secret: string, request: Hostile) =>
  new Promise<Result>((resolve) => {
    const { body, cutAt, leavesAt } = request
    const { host, hostname, port } = new URL(url)
    const startedAt = performance.now()
    const socket = connect({ host: hostname, port: Number(port), noDelay: true })
    let received = ""
    const finish = (result: Result) => {
      clearTimeout(clock)
      socket.destroy()
      resolve(result)
    }
    const clock = setTimeout(() => finish({ kind: "hang", received }), patience)
    socket.on("connect", () => {
      socket.write(headOf(request, host, secret))
      socket.write(body.subarray(0, cutAt ?? body.length))
      if (cutAt !== undefined) setTimeout(() => finish({ kind: "left" }), 20)
    })
    const look = (isOver: boolean) => {
      const answer = answerIn(received, request.method !== "HEAD")
      const millis = performance.now() - startedAt
      if (answer !== undefined) finish({ kind: "answer", answer, millis })
      else if (isOver) finish({ kind: "closed", received, millis })
    }
    socket.setEncoding("latin1").on("data", (chunk: string) => {
      received += chunk
      if (leavesAt !== undefined && received.length >= leavesAt) finish({ kind: "left" })
      else if (received.length < 1_000_000) look(false)
    })
    // A gateway that closes on what it has not read resets the connection; what it said before counts.
    socket.on("error", () => {})
    socket.on("close", () => look(true))
  })
