import { createServer, type IncomingHttpHeaders, request } from "node:http"
import { Effect, Queue } from "effect"

/** A request as it came by. */
export interface RecordedRequest {
  readonly path: string
  readonly headers: IncomingHttpHeaders
  /** The body as JSON. */
  readonly body: unknown
}

/** A server that passes everything on to another one, and shows what came by: for fakes that keep only half of it. */
export const to = (target: string) =>
  Effect.gen(function* () {
    const inbox = yield* Queue.unbounded<RecordedRequest>()
    const server = createServer((incoming, outgoing) => {
      const chunks: Array<Buffer> = []
      incoming.on("data", (chunk: Buffer) => chunks.push(chunk))
      incoming.on("end", () => {
        const bytes = Buffer.concat(chunks)
        const path = incoming.url ?? ""
        Queue.unsafeOffer(inbox, { path, headers: incoming.headers, body: JSON.parse(bytes.toString("utf8")) })
        const { host: _, ...headers } = incoming.headers
        const passed = request(`${target}${path}`, { method: incoming.method ?? "GET", headers, agent: false })
        passed.on("error", () => outgoing.destroy())
        passed.on("response", (answer) => {
          outgoing.writeHead(answer.statusCode ?? 500, answer.headers)
          outgoing.flushHeaders()
          answer.on("data", (chunk) => outgoing.write(chunk))
          answer.on("end", () => outgoing.end())
          answer.on("error", () => outgoing.destroy())
        })
        passed.end(bytes)
      })
    })
    yield* Effect.acquireRelease(
      Effect.async<void>((resume) => {
        server.listen(0, "127.0.0.1", () => resume(Effect.void))
      }),
      () =>
        Effect.async<void>((resume) => {
          server.close(() => resume(Effect.void))
          server.closeAllConnections()
        })
    )
    const address = server.address()
    if (address === null || typeof address === "string") return yield* Effect.dieMessage("no port")
    return { url: `http://127.0.0.1:${address.port}`, received: Queue.take(inbox) }
  })
