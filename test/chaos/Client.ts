import { type IncomingMessage, request } from "node:http"
import { Predicate } from "effect"
import type { Outcome } from "./History.ts"

export interface Sending {
  readonly url: string
  readonly path: string
  readonly method: "GET" | "POST"
  readonly headers: Readonly<Record<string, string>>
  readonly body: unknown
  /** Milliseconds after which the client leaves. */
  readonly leavesAfter: number | undefined
}

/** The longest that a client waits, in milliseconds. */
export const patience = 60_000

const parsed = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

/** What a stream's lines say, and how it ended. */
const readStream = (text: string): Outcome => {
  const events = text.split("\n\n").filter((event) => event.startsWith("data: "))
  let content = ""
  let usage: unknown
  let end: "done" | "error" | "broken" = "broken"
  for (const event of events) {
    const data = event.slice("data: ".length)
    if (data === "[DONE]") {
      end = "done"
      continue
    }
    const chunk = parsed(data)
    if (!Predicate.isRecord(chunk)) continue
    if ("error" in chunk) end = "error"
    if (chunk["usage"]) usage = chunk["usage"]
    const [choice]: ReadonlyArray<unknown> = Array.isArray(chunk["choices"]) ? chunk["choices"] : []
    const delta = Predicate.isRecord(choice) && Predicate.isRecord(choice["delta"]) ? choice["delta"]["content"] : ""
    if (typeof delta === "string") content += delta
  }
  return { kind: "stream", end, text: content, usage }
}

const codeOf = (error: Error) => ("code" in error && typeof error.code === "string" ? error.code : error.message)

/** Sends one request over a connection of its own. */
export const send = ({ body, headers, leavesAfter, method, path, url }: Sending) =>
  new Promise<Outcome>((resolve) => {
    const text = body === undefined ? undefined : JSON.stringify(body)
    let chunks = ""
    let answer: IncomingMessage | undefined
    const outgoing = request(`${url}${path}`, {
      method,
      agent: false,
      headers: {
        ...headers,
        ...(text === undefined
          ? {}
          : { "content-type": "application/json", "content-length": String(Buffer.byteLength(text)) })
      }
    })
    const clocks = [
      setTimeout(() => finish({ kind: "hang" }), patience),
      ...(leavesAfter === undefined ? [] : [setTimeout(() => finish({ kind: "left" }), leavesAfter)])
    ]
    const finish = (outcome: Outcome) => {
      clocks.forEach(clearTimeout)
      outgoing.destroy()
      resolve(outcome)
    }
    const isStream = () => String(answer?.headers["content-type"]).startsWith("text/event-stream")
    const broken = (code: string) => finish(isStream() ? readStream(chunks) : { kind: "reset", code })
    outgoing.on("error", (error) => broken(codeOf(error)))
    outgoing.on("response", (incoming) => {
      answer = incoming
      incoming.setEncoding("utf8").on("data", (chunk: string) => (chunks += chunk))
      incoming.on("error", (error) => broken(codeOf(error)))
      incoming.on("end", () => {
        if (isStream()) return finish(readStream(chunks))
        const replayed = incoming.headers["idempotency-replayed"] === "true"
        return finish({ kind: "answer", status: incoming.statusCode ?? 0, body: parsed(chunks), replayed })
      })
    })
    outgoing.end(text)
  })
