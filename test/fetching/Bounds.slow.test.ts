import type { RequestListener, ServerResponse } from "node:http"
import type { Socket } from "node:net"
import { gzipSync } from "node:zlib"
import { Effect, Stream } from "effect"
import { assert, describe, it } from "../harness/It.ts"
import { ask, below, endless, fetcherOver, make } from "./ForeignServer.ts"

const mebibyte = 1024 * 1024

const openFetcher = fetcherOver(["127.0.0.1"], { connectTimeoutSeconds: 1 })

const trickle = (response: ServerResponse) => {
  const timer = setInterval(() => response.write("x"), 20)
  response.on("close", () => clearInterval(timer))
}

const short = { withinSeconds: 0.5 }
const bad: ReadonlyArray<readonly [string, string, RequestListener, { readonly withinSeconds?: number }]> = [
  ["10 GB announced", "too_large", (_, response) => endless(response.writeHead(200, { "content-length": 1e10 })), {}],
  ["10 GB not announced", "too_large", (_, response) => endless(response), {}],
  ["one byte too much", "too_large", (_, response) => response.end(Buffer.alloc(mebibyte + 1)), {}],
  [
    "one byte too much, announced, and no body",
    "too_large",
    (_, response) => response.writeHead(200, { "content-length": mebibyte + 1 }).flushHeaders(),
    {}
  ],
  ["silence", "timeout", () => undefined, short],
  ["a head and then silence", "timeout", (_, response) => response.flushHeaders(), short],
  ["a body that never ends", "timeout", (_, response) => response.write("beginning"), short],
  ["a trickle", "timeout", (_, response) => trickle(response), short],
  [
    "a trickle of redirects",
    "timeout",
    (_, response) => setTimeout(() => response.writeHead(302, { location: "/" }).end(), 200),
    short
  ],
  [
    "less than announced",
    "network",
    (_, response) => response.writeHead(200, { "content-length": 9 }).write("five!", () => response.destroy()),
    {}
  ],
  ["a chunked body cut short", "network", (_, response) => response.write("five!", () => response.destroy()), {}],
  ["no answer", "network", (_, response) => response.destroy(), {}],
  [
    "gzip",
    "network",
    (_, response) => response.writeHead(200, { "content-encoding": "gzip" }).end(gzipSync(Buffer.alloc(10 * mebibyte))),
    {}
  ],
  ["no content", "status", (_, response) => response.writeHead(204).end(), {}],
  ["a part", "status", (_, response) => response.writeHead(206).end("part"), {}],
  ["not found", "status", (_, response) => response.writeHead(404).end("<html>"), {}],
  ["an error", "status", (_, response) => response.writeHead(500).end("<html>"), {}]
]

describe("a bad response", () => {
  const ways = ["bytes", "stream"] as const
  const rows = bad.flatMap(([name, ...row]) => ways.map((way) => [`${name}, as ${way}`, way, ...row] as const))
  it.scopedLive.each(rows)("fails, and its connection is closed: %s", function* ([, way, reason, reply, more]) {
    const fetcher = yield* openFetcher
    const host = yield* make(reply)
    const request = ask(host.url, more)
    const fetched = way === "bytes" ? fetcher.bytes(request) : Stream.runDrain(fetcher.stream(request))
    const failure = yield* Effect.flip(Effect.asVoid(fetched))
    assert.strictEqual(failure.reason, reason)
    yield* host.left
  })

  const talks: ReadonlyArray<readonly [string, string, (socket: Socket) => void]> = [
    ["no HTTP", "network", (socket) => socket.write("220 smtp.example ESMTP\r\n")],
    [
      "headers without end",
      "network",
      (socket) => {
        const write = () => {
          while (!socket.destroyed && socket.write("x-more: and more\r\n"));
        }
        socket.on("drain", write)
        socket.write("HTTP/1.1 200 OK\r\n")
        write()
      }
    ],
    [
      "only promises",
      "timeout",
      (socket) => {
        const timer = setInterval(() => socket.write("HTTP/1.1 103 Early Hints\r\n\r\n"), 5)
        socket.on("close", () => clearInterval(timer))
      }
    ],
    [
      "another protocol",
      "network",
      (socket) => socket.write("HTTP/1.1 101 Switching Protocols\r\nupgrade: h2c\r\nconnection: upgrade\r\n\r\n")
    ],
    [
      "two lengths",
      "network",
      (socket) => socket.write("HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab")
    ]
  ]
  it.scopedLive.each(talks)("fails below HTTP: %s", function* ([, reason, talk]) {
    const fetcher = yield* openFetcher
    const { gone, port } = yield* below(talk)
    const withinSeconds = reason === "timeout" ? 2 : 30
    const failure = yield* Effect.flip(fetcher.bytes(ask(`http://127.0.0.1:${port}/`, { withinSeconds })))
    assert.strictEqual(failure.reason, reason)
    yield* gone
  })

  it.scopedLive("fails when it takes too long to connect to", function* () {
    const fetcher = yield* fetcherOver(["127.0.0.1"], { connectTimeoutSeconds: 1, names: () => Effect.never })
    const { gone, port } = yield* below(() => undefined)
    const failure = yield* Effect.flip(fetcher.bytes(ask(`https://127.0.0.1:${port}/`)))
    assert.deepInclude(failure, { reason: "timeout", detail: `127.0.0.1:${port}: connection timed out` })
    yield* gone
    const nameless = yield* Effect.flip(fetcher.bytes(ask("http://slow.example/")))
    assert.strictEqual(nameless.reason, "timeout")
  })
})
