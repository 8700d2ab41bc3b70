import { Effect, Fiber } from "effect"
import { assert, describe, it } from "../harness/It.ts"
import { ask, certificate, fetcherOver, make } from "./ForeignServer.ts"

const secret = "Key sk-of-the-route"
const own = (origin: string) => ({ ownOrigin: { origin, headers: { Authorization: secret, "X-Extra": "yes" } } })

const over = (...allowed: ReadonlyArray<string>) =>
  fetcherOver(allowed, { names: () => Effect.succeed(["127.0.0.1"]), ca: certificate })

/** Sends `/n` on to `/n-1`, and says so at `/0`. */
const countdown = (status: number) =>
  make((request, response) => {
    const left = Number(request.url?.slice(1))
    if (left === 0) response.end("there")
    else response.writeHead(status, { location: `${left - 1}` }).end("body of a redirect")
  })

describe("redirects", () => {
  it.scopedLive.each([301, 302, 303, 307, 308])(
    "of status %i are followed three times and no further",
    function* (status) {
      const fetcher = yield* over("127.0.0.1")
      const host = yield* countdown(status)
      assert.strictEqual(String(yield* fetcher.bytes(ask(`${host.url}/3`))), "there")
      assert.strictEqual(host.connections(), 4)
      const { reason } = yield* Effect.flip(fetcher.bytes(ask(`${host.url}/4`)))
      assert.strictEqual(reason, "refused")
      assert.strictEqual(host.connections(), 8)
      yield* host.left
    }
  )

  it.scopedLive("close the connection before them", function* () {
    const fetcher = yield* over("127.0.0.1")
    const silent = yield* make(() => undefined)
    const host = yield* make((_, response) => {
      response.writeHead(302, { location: silent.url }).write("a body that goes on")
    })
    const fetching = yield* Effect.fork(fetcher.bytes(ask(host.url)))
    yield* silent.called
    yield* host.left
    yield* Fiber.interrupt(fetching)
  })

  it.scopedLive("that form a circle end after three", function* () {
    const fetcher = yield* over("127.0.0.1")
    const host = yield* make((request, response) => response.writeHead(302, { location: request.url }).end())
    assert.strictEqual((yield* Effect.flip(fetcher.bytes(ask(`${host.url}/loop`)))).reason, "refused")
    assert.strictEqual(host.connections(), 4)
  })

  const odd: ReadonlyArray<readonly [number, Record<string, string | Array<string>>]> = [
    [302, {}],
    [302, { location: ["/a", "/b"] }],
    [300, { location: "/a" }],
    [304, { location: "/a" }],
    [305, { location: "/a" }]
  ]
  it.scopedLive.each(odd)("without a usable location fail: %i %j", function* ([status, headers]) {
    const fetcher = yield* over("127.0.0.1")
    const host = yield* make((_, response) => response.writeHead(status, headers).end())
    const failure = yield* Effect.flip(fetcher.bytes(ask(host.url)))
    assert.deepInclude(failure, { reason: "status", status })
    assert.strictEqual(host.connections(), 1)
  })

  it.scopedLive("never lead from https to http", function* () {
    const fetcher = yield* over("127.0.0.1")
    const plain = yield* make((_, response) => response.end("plain"))
    const secure = yield* make((_, response) => response.writeHead(302, { location: plain.url }).end(), {
      secure: true
    })
    assert.strictEqual((yield* Effect.flip(fetcher.bytes(ask(secure.url)))).reason, "refused")
    assert.deepStrictEqual([secure.connections(), plain.connections()], [1, 0])
  })
})

describe("https", () => {
  it.scopedLive("accepts only the names of the certificate", function* () {
    const fetcher = yield* over("127.0.0.1")
    const host = yield* make((_, response) => response.end("secure"), { secure: true })
    for (const name of ["pictures.example", "pictures.example.", "127.0.0.1"]) {
      assert.strictEqual(String(yield* fetcher.bytes(ask(`https://${name}:${host.port}/`))), "secure", name)
    }
    const other = yield* Effect.flip(fetcher.bytes(ask(`https://other.example:${host.port}/`)))
    assert.strictEqual(other.reason, "network")
    assert.match(other.detail, /^other\.example:\d+: ERR_TLS_CERT_ALTNAME_INVALID/)
    assert.lengthOf(host.seen, 3)
    yield* host.left
  })

  it.scopedLive("refuses a certificate without a known authority", function* () {
    const fetcher = yield* fetcherOver(["127.0.0.1"])
    const host = yield* make((_, response) => response.end("secure"), { secure: true })
    const failure = yield* Effect.flip(fetcher.bytes(ask(host.url)))
    assert.deepStrictEqual([failure.reason, host.seen.length], ["network", 0])
  })
})

describe("a route's credential", () => {
  const credentials = ({ headers }: { headers: Readonly<Record<string, unknown>> }) => [
    headers["authorization"],
    headers["x-extra"]
  ]

  it.scopedLive("goes to its own origin, which needs no exemption", function* () {
    const fetcher = yield* over()
    const home = yield* countdown(302)
    const body = yield* fetcher.bytes(ask(`${home.url}/1`, { from: "provider", ...own(home.url) }))
    assert.strictEqual(String(body), "there")
    assert.deepStrictEqual(home.seen.map(credentials), [
      [secret, "yes"],
      [secret, "yes"]
    ])
    assert.strictEqual(home.seen[0]?.headers["accept-encoding"], "identity")
  })

  it.scopedLive("goes nowhere else, nor back to its own origin once another host redirects there", function* () {
    const fetcher = yield* over("127.0.0.1")
    const home = yield* make((request, response) => {
      if (request.url === "/back") response.end("back")
      else response.writeHead(302, { location: `${away.url}/away` }).end()
    })
    const away = yield* make((_, response) => response.writeHead(302, { location: `${home.url}/back` }).end())
    const body = yield* fetcher.bytes(ask(`${home.url}/out`, own(home.url)))
    assert.strictEqual(String(body), "back")
    assert.deepStrictEqual(home.seen.map(credentials), [
      [secret, "yes"],
      [undefined, undefined]
    ])
    assert.deepStrictEqual(away.seen.map(credentials), [[undefined, undefined]])
  })

  it.scopedLive("does not exempt where its origin redirects to", function* () {
    const fetcher = yield* over()
    const inner = yield* make((_, response) => response.end("inner"))
    const home = yield* make((_, response) => response.writeHead(307, { location: inner.url }).end())
    const failure = yield* Effect.flip(fetcher.bytes(ask(home.url, own(home.url))))
    assert.strictEqual(failure.reason, "refused")
    assert.deepStrictEqual([home.connections(), inner.connections()], [1, 0])
  })

  it.scopedLive("is not sent where the URL has another port, scheme or host", function* () {
    const fetcher = yield* over("127.0.0.1")
    const host = yield* make((_, response) => response.end("fine"))
    const others = [`http://127.0.0.1:${host.port + 1}`, `https://127.0.0.1:${host.port}`, "http://127.0.0.1", "no"]
    for (const origin of others) yield* fetcher.bytes(ask(host.url, own(origin)))
    assert.deepStrictEqual(
      host.seen.map(credentials),
      others.map(() => [undefined, undefined])
    )
  })

  it.scopedLive("and the URL's path and query are in no failure's text", function* () {
    const fetcher = yield* over()
    const host = yield* make((request, response) => {
      if (request.url?.startsWith("/status")) response.writeHead(401).end(secret)
      else if (request.url?.startsWith("/loop")) response.writeHead(302, { location: request.url }).end()
      else if (request.url?.startsWith("/out")) response.writeHead(302, { location: "ftp://a?sig=hidden" }).end()
      else response.destroy()
    })
    for (const path of ["/status", "/loop", "/out", "/cut"]) {
      const { detail } = yield* Effect.flip(fetcher.bytes(ask(`${host.url}${path}?sig=hidden`, own(host.url))))
      assert.notMatch(detail, /hidden|sk-of-the-route/)
      assert.include(detail, `127.0.0.1:${host.port}`)
    }
  })
})
