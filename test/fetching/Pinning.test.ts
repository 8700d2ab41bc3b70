import { Effect } from "effect"
import type { Names } from "../../src/fetching/PinnedRequest.ts"
import { assert, describe, it } from "../harness/It.ts"
import { ask, certificate, fetcherOver, make, sockets } from "./ForeignServer.ts"

/** A name server that gives another answer each time, and the last one for ever. */
const changing = (...answers: ReadonlyArray<ReadonlyArray<string>>) => {
  const asked: Array<string> = []
  const names: Names = (host) =>
    Effect.sync(() => {
      asked.push(host)
      return answers[Math.min(asked.length, answers.length) - 1] ?? []
    })
  return { asked, names }
}

const over = (names: Names, ...allowed: ReadonlyArray<string>) => fetcherOver(allowed, { names })

const good = "127.0.0.1"
const bad = "127.0.0.2"

describe("a name that changes its answer", () => {
  it.scopedLive("is connected to at the address that was checked", function* () {
    const { asked, names } = changing([good], [bad])
    const fetcher = yield* over(names, good)
    const host = yield* make((_, response) => response.end("good"))
    const inner = yield* make((_, response) => response.end("secret"), { address: bad, port: host.port })
    const body = yield* fetcher.bytes(ask(`http://rebinding.example:${host.port}/`))
    assert.strictEqual(String(body), "good")
    assert.deepStrictEqual(asked, ["rebinding.example"])
    assert.deepStrictEqual([host.connections(), inner.connections()], [1, 0])
  })

  it.scopedLive("is checked again for the next fetch, over a new connection", function* () {
    const { asked, names } = changing([good], [good], [bad])
    const fetcher = yield* over(names, good)
    const host = yield* make((_, response) => response.end("good"))
    const inner = yield* make((_, response) => response.end("secret"), { address: bad, port: host.port })
    const url = `http://rebinding.example:${host.port}/`
    yield* fetcher.bytes(ask(url))
    yield* fetcher.bytes(ask(url))
    assert.strictEqual(host.connections(), 2)
    const { reason } = yield* Effect.flip(fetcher.bytes(ask(url)))
    assert.strictEqual(reason, "refused")
    assert.lengthOf(asked, 3)
    assert.deepStrictEqual([host.connections(), inner.connections()], [2, 0])
  })

  it.scopedLive("is checked again on every redirect", function* () {
    const { names } = changing([good], [good], [bad])
    const fetcher = yield* over(names, good)
    const host = yield* make((_, response) => response.writeHead(302, { location: "/again" }).end())
    const inner = yield* make((_, response) => response.end("secret"), { address: bad, port: host.port })
    const failure = yield* Effect.flip(fetcher.bytes(ask(`http://rebinding.example:${host.port}/`)))
    assert.strictEqual(failure.reason, "refused")
    assert.deepStrictEqual([host.connections(), inner.connections()], [2, 0])
  })
})

describe("a name with several addresses", () => {
  it.scopedLive("is fetched from the next when one does not answer", function* () {
    const fetcher = yield* over(changing(["::1", "127.0.0.3", good]).names, "127.0.0.0/8", "::1")
    const host = yield* make((_, response) => response.end("good"))
    const opened = yield* sockets
    const body = yield* fetcher.bytes(ask(`http://several.example:${host.port}/`))
    assert.strictEqual(String(body), "good")
    assert.strictEqual(opened(), 1)
  })

  it.scopedLive("is fetched from the next by https too", function* () {
    const { names } = changing(["::1", "127.0.0.3", good])
    const fetcher = yield* fetcherOver(["127.0.0.0/8", "::1"], { names, ca: certificate })
    const host = yield* make((_, response) => response.end("good"), { secure: true })
    assert.strictEqual(String(yield* fetcher.bytes(ask(`https://pictures.example:${host.port}/`))), "good")
  })

  it.scopedLive("is not fetched from at all when there are none, or none answers", function* () {
    const fetcher = yield* over(changing(["127.0.0.3", "127.0.0.4"], []).names, "127.0.0.0/8")
    const host = yield* make((_, response) => response.end("good"))
    const url = `http://several.example:${host.port}/`
    assert.strictEqual((yield* Effect.flip(fetcher.bytes(ask(url)))).reason, "network")
    assert.strictEqual((yield* Effect.flip(fetcher.bytes(ask(url)))).reason, "network")
    assert.strictEqual(host.connections(), 0)
  })

  it.scopedLive("may have an IPv4 address mapped into IPv6", function* () {
    const fetcher = yield* over(changing(["::ffff:127.0.0.1"]).names, good)
    const host = yield* make((_, response) => response.end("good"))
    assert.strictEqual(String(yield* fetcher.bytes(ask(`http://mapped.example:${host.port}/`))), "good")
    assert.strictEqual(String(yield* fetcher.bytes(ask(`http://[::ffff:127.0.0.1]:${host.port}/`))), "good")
  })
})
