import { Effect } from "effect"
import { assertRefused, soon } from "../../harness/client/HttpCalls.ts"
import { assert, withLayer } from "../../harness/It.ts"
import { openTo } from "../connections/RawSocket.ts"
import { ask, digits, exchange, get, layer, put, ServedMedia } from "./ServedMedia.ts"

const mib = 1024 * 1024
/** Times in HTTP have no milliseconds. */
const later = new Date(Date.now() + 3_600_000).toUTCString()
const earlier = new Date(Date.now() - 3_600_000).toUTCString()

withLayer(layer)("local media", (it) => {
  it.effect("are served to everybody with a permanent cache and their own type", function* () {
    const name = yield* put(digits)
    for (const method of ["GET", "HEAD"]) {
      const { headers, status, text } = yield* ask(`/media/${name}`, { method, headers: { "x-request-id": "mine" } })
      assert.strictEqual(status, 200)
      assert.strictEqual(text, method === "GET" ? "0123456789" : "")
      const modified = headers.get("last-modified")
      const passing = ["connection", "date", "keep-alive", "last-modified"]
      assert.deepStrictEqual(Object.fromEntries([...headers].filter(([name]) => !passing.includes(name))), {
        "accept-ranges": "bytes",
        "cache-control": "public, max-age=31536000, immutable",
        "content-length": "10",
        "content-security-policy": "sandbox; default-src 'none'",
        "content-type": "image/png",
        etag: `"${name.slice("public/".length, -".png".length)}"`,
        "x-content-type-options": "nosniff",
        "x-request-id": "mine"
      })
      assert.isAtMost(Math.abs(Date.parse(modified ?? "") - Date.now()), 60_000)
    }
    const video = yield* put(digits, "video/mp4")
    const { headers } = yield* ask(`/media/${video}?download=1`)
    assert.strictEqual(headers.get("content-type"), "video/mp4")
    assert.match(headers.get("x-request-id") ?? "", /^req_/)
  })

  const ranges: ReadonlyArray<readonly [range: string, status: number, text: string, contentRange: string | null]> = [
    ["bytes=0-3", 206, "0123", "bytes 0-3/10"],
    ["bytes=4-", 206, "456789", "bytes 4-9/10"],
    ["bytes=-3", 206, "789", "bytes 7-9/10"],
    ["bytes=-99", 206, "0123456789", "bytes 0-9/10"],
    ["bytes=0-0", 206, "0", "bytes 0-0/10"],
    ["bytes=9-99", 206, "9", "bytes 9-9/10"],
    ["bytes=0-1,5-6", 200, "0123456789", null],
    ["bytes=x", 200, "0123456789", null],
    ["items=0-1", 200, "0123456789", null]
  ]
  it.effect.each(ranges)("are answered for %s with %d", function* ([range, status, text, contentRange]) {
    const answer = yield* ask(`/media/${yield* put(digits)}`, { headers: { range } })
    assert.deepStrictEqual([answer.status, answer.text], [status, text])
    assert.strictEqual(answer.headers.get("content-range"), contentRange)
    assert.strictEqual(answer.headers.get("content-length"), String(text.length))
  })

  it.effect.each(["bytes=10-", "bytes=99-100", "bytes=-0", "bytes=5-4"])(
    "are refused for the unsatisfiable %s",
    function* (range) {
      const answer = yield* ask(`/media/${yield* put(digits)}`, { headers: { range } })
      const message = "The requested range cannot be satisfied."
      assertRefused(answer, { status: 416, type: "invalid_request_error", code: null, message })
      assert.strictEqual(answer.headers.get("content-range"), "bytes */10")
      assert.isNull(answer.headers.get("cache-control"))
      assert.isNull(answer.headers.get("etag"))
    }
  )

  const conditions: ReadonlyArray<readonly [headers: (etag: string) => Record<string, string>, status: number]> = [
    [(etag) => ({ "if-none-match": etag }), 304],
    [(etag) => ({ "if-none-match": `"x", ${etag}` }), 304],
    [(etag) => ({ "if-none-match": `W/${etag}` }), 304],
    [() => ({ "if-none-match": "*" }), 304],
    [() => ({ "if-none-match": '"other"' }), 200],
    [() => ({ "if-none-match": '"other"', "if-modified-since": later }), 200],
    [() => ({ "if-modified-since": later }), 304],
    [() => ({ "if-modified-since": earlier }), 200],
    [() => ({ "if-modified-since": "nonsense" }), 200],
    [(etag) => ({ "if-match": etag }), 200],
    [() => ({ "if-match": '"other"' }), 412],
    [() => ({ "if-unmodified-since": earlier }), 412],
    [(etag) => ({ range: "bytes=0-3", "if-range": etag }), 206],
    [() => ({ range: "bytes=0-3", "if-range": '"other"' }), 200],
    [() => ({ range: "bytes=0-3", "if-range": later }), 206],
    [() => ({ range: "bytes=0-3", "if-range": earlier }), 200]
  ]
  it.effect("are served by the request's conditions", function* () {
    const name = yield* put(digits)
    const etag = `"${name.slice("public/".length, -".png".length)}"`
    for (const [make, status] of conditions) {
      const headers = make(etag)
      // The client library would otherwise make a request of its own mind out of these.
      const answer = yield* get(
        `/media/${name}`,
        Object.entries(headers)
          .map((pair) => `${pair.join(": ")}\r\n`)
          .join("")
      )
      assert.strictEqual(answer.status, status, JSON.stringify(headers))
      if (status !== 304) continue
      assert.strictEqual(answer.text, "")
      assert.strictEqual(answer.headers.get("etag"), etag)
      assert.strictEqual(answer.headers.get("cache-control"), "public, max-age=31536000, immutable")
      assert.isNull(answer.headers.get("content-type"))
    }
  })

  it.effect("are served several times on one connection", function* () {
    const name = yield* put(digits)
    const line = (method: string, more = "") => `${method} /media/${name} HTTP/1.1\r\nHost: x\r\n${more}\r\n`
    const asked = [line("GET"), line("HEAD"), line("GET", "Range: bytes=50-\r\n"), line("GET", "Connection: close\r\n")]
    const text = yield* exchange(asked.join(""))
    const statuses = [...text.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => status)
    assert.deepStrictEqual(statuses, ["200", "200", "416", "200"])
    assert.isTrue(text.endsWith("\r\n\r\n0123456789"))
    assert.strictEqual(text.split("0123456789").length, 3)
  })

  it.effect("are closed without a log line when a client leaves in the middle", function* () {
    const { logged, openFiles, url } = yield* ServedMedia
    const name = yield* put(new Uint8Array(64 * mib), "video/mp4")
    const leave = Effect.scoped(
      Effect.gen(function* () {
        const { received, socket, write } = yield* openTo(url)
        yield* write(`GET /media/${name} HTTP/1.1\r\nHost: x\r\n\r\n`)
        yield* soon(Effect.sync(() => assert.isAbove(received().length, 1000)))
        socket.pause()
      })
    )
    const leaveAtOnce = Effect.scoped(
      Effect.flatMap(openTo(url), ({ write }) => write(`GET /media/${name} HTTP/1.1\r\nHost: x\r\n\r\n`))
    )
    yield* Effect.all(
      Array.from({ length: 20 }, (_, nth) => (nth % 2 === 0 ? leave : leaveAtOnce)),
      { concurrency: 5 }
    )
    yield* soon(Effect.sync(() => assert.deepStrictEqual(openFiles() ?? [], [])))
    assert.deepStrictEqual(logged, [])
    assert.strictEqual((yield* ask(`/media/${name}`)).text.length, 64 * mib)
  })
})
