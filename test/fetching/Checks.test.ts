import { Effect, Either } from "effect"
import { Fetcher } from "../../src/services/media/Fetcher.ts"
import { assert, describe, it } from "../harness/It.ts"
import { fetcherFor, sockets } from "./ForeignServer.ts"

/** A fetcher with these exempt ranges, and the names that it has looked up. */
const world = (...allowed: ReadonlyArray<string>) => {
  const lookedUp: Array<string> = []
  const layer = fetcherFor(allowed, {
    names: (host) => {
      lookedUp.push(host)
      return Effect.succeed([host.startsWith("public") ? "93.184.216.34" : "127.0.0.1"])
    }
  })
  const verdict = (url: string) =>
    Effect.flatMap(Fetcher, (fetcher) => Effect.either(fetcher.check({ url, from: "customer" }))).pipe(
      Effect.map((found) => (Either.isLeft(found) ? found.left.reason : "fine")),
      Effect.provide(layer)
    )
  return { lookedUp, verdict }
}

describe("the check of a URL that a provider is to fetch", () => {
  const refused = [
    "http://169.254.169.254/latest/meta-data/",
    "http://2852039166/",
    "http://0x7f.1/",
    "http://[::ffff:10.0.0.1]/",
    "http://[fd00::1]/",
    "http://localhost/a.png",
    "http://LOCALHOST./a.png",
    "http://box.localhost/",
    "http://intranet/",
    "http://metadata.google.internal/",
    "https://printer.local/",
    "https://nas.home.arpa/",
    "https://wiki.corp/",
    "https://user@public.example/",
    "https://user:secret@public.example/",
    "https://public.example:8443/",
    "http://93.184.216.34:22/",
    "ftp://public.example/",
    "http://",
    `https://public.example/${"x".repeat(9_000)}`
  ]
  it.scopedLive.each(refused)("refuses %s without a look-up or a socket", function* (url) {
    const opened = yield* sockets
    const { lookedUp, verdict } = world()
    assert.strictEqual(yield* verdict(url), "refused")
    assert.deepStrictEqual([lookedUp, opened()], [[], 0])
  })

  const passed = [
    "https://public.example/a.png?x=1",
    "http://public.example:80/",
    "https://local.example/",
    "https://corporate.example/",
    "https://93.184.216.34/",
    "https://[2606:4700::1111]/"
  ]
  it.scopedLive.each(passed)("passes %s without a look-up or a socket", function* (url) {
    const opened = yield* sockets
    const { lookedUp, verdict } = world()
    assert.strictEqual(yield* verdict(url), "fine")
    assert.deepStrictEqual([lookedUp, opened()], [[], 0])
  })

  it.scopedLive("passes what the exempt ranges allow, and looks up the names that they might", function* () {
    const { lookedUp, verdict } = world("127.0.0.1")
    assert.strictEqual(yield* verdict("http://127.0.0.1:8080/a.png"), "fine")
    assert.strictEqual(yield* verdict("http://127.0.0.2/a.png"), "refused")
    assert.deepStrictEqual(lookedUp, [])
    assert.strictEqual(yield* verdict("http://files.internal:8080/a.png"), "fine")
    assert.strictEqual(yield* verdict("https://public.example:8443/"), "refused")
    assert.deepStrictEqual(lookedUp, ["files.internal", "public.example"])
  })
})
