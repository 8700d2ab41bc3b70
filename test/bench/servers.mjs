import { createServer } from "node:http"
import { Pool } from "undici"

const usage = { prompt_tokens: 12, completion_tokens: 7, total_tokens: 19 }
const choice = { index: 0, message: { role: "assistant", content: "Hello! How can I help?" }, finish_reason: "stop" }
const completion = Buffer.from(
  JSON.stringify({ id: "answer", object: "chat.completion", created: 1, model: "theirs", choices: [choice], usage })
)

export const eventsPerStream = 200
const eventsPerPacket = 20

const event = (fields) =>
  `data: ${JSON.stringify({ id: "answer", object: "chat.completion.chunk", created: 1, model: "theirs", ...fields })}\n\n`
const delta = (content, finish_reason = null) => event({ choices: [{ index: 0, delta: { content }, finish_reason }] })
const events = [
  ...Array.from({ length: eventsPerStream - 2 }, (_, n) => delta(`word ${n} `)),
  delta("", "stop"),
  event({ choices: [], usage })
]
const packets = Array.from({ length: eventsPerStream / eventsPerPacket }, (_, n) =>
  Buffer.from(events.slice(n * eventsPerPacket, (n + 1) * eventsPerPacket).join(""))
)
const done = "data: [DONE]\n\n"

const receive = (request, respond) => {
  const chunks = []
  request.on("data", (chunk) => chunks.push(chunk))
  request.on("end", () => respond(Buffer.concat(chunks)))
}

const writePackets = (response, at = 0) => {
  if (response.destroyed) return
  const packet = packets[at]
  if (packet === undefined) return response.end(done)
  response.write(packet)
  setImmediate(writePackets, response, at + 1)
}

/** A provider that answers every chat at once, with the same text. */
const upstream = () =>
  createServer((request, response) =>
    receive(request, (body) => {
      if (body.includes('"stream":true')) {
        response.writeHead(200, { "content-type": "text/event-stream" })
        return writePackets(response)
      }
      response.writeHead(200, { "content-type": "application/json", "content-length": completion.length })
      response.end(completion)
    })
  )

/** What a proxy costs in Node.js that passes everything on and accounts for nothing. */
const proxy = (origin) => {
  const pool = new Pool(origin, { connections: 256 })
  return createServer((request, response) =>
    receive(request, (body) => {
      const { method, url: path } = request
      const headers = { "content-type": request.headers["content-type"], authorization: "Bearer upstream" }
      pool.dispatch(
        { method, path, headers, body },
        {
          onRequestStart(controller) {
            response.on("close", () => {
              if (!response.writableFinished) controller.abort(new Error("the client has left"))
            })
          },
          onResponseStart(_controller, status, { "content-length": length, "content-type": type }) {
            response.writeHead(status, { "content-type": type, ...(length && { "content-length": length }) })
          },
          onResponseData(controller, chunk) {
            if (response.write(chunk)) return
            controller.pause()
            response.once("drain", () => controller.resume())
          },
          onResponseEnd() {
            response.end()
          },
          onResponseError() {
            if (!response.headersSent) response.writeHead(502)
            response.end()
          }
        }
      )
    })
  )
}

const roles = { upstream, proxy }

if (process.send) {
  const [role, origin] = process.argv.slice(2)
  const server = roles[role](origin)
  server.listen(0, "127.0.0.1", () => process.send(server.address().port))
  // Signals of the terminal are for whoever started this; it ends with them.
  process.on("SIGINT", () => {})
  process.on("disconnect", () => process.exit())
}
