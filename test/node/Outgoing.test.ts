import { createServer } from "node:http"
import { connect } from "node:net"
import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"
import { Context, Effect, Exit, Fiber, Layer, Queue } from "effect"
import { request } from "undici"
import { abortAfter, OutgoingProxies, type Proxies, proxyFor } from "../../src/node/Outgoing.ts"
import { Upstream } from "../../src/providers/client/Upstream.ts"
import { ask, certificate, fetcherOver, make } from "../fetching/ForeignServer.ts"
import { assert, describe, it } from "../harness/It.ts"
import { listen } from "../harness/Listening.ts"
import { post } from "../providers/client/Upstreams.ts"

/** The status that refuses a tunnel, or how a proxy or the host behind it fails: `mute` is a host that never answers. */
type Fault = number | "closed" | "silent" | "mute"

/** A proxy that connects every name and address to 127.0.0.2, where no host is called directly. */
const makeProxy = (fault?: Fault) =>
  Effect.gen(function* () {
    const tunnels: Array<{ readonly target: string; readonly authorization: string | undefined }> = []
    const ended = yield* Queue.unbounded<string>()
    const server = createServer((_, response) => response.writeHead(500).end("no tunnel"))
    server.on("connect", (request, socket) => {
      const target = request.url ?? ""
      tunnels.push({ target, authorization: request.headers["proxy-authorization"] })
      socket.on("error", () => undefined)
      socket.on("close", () => Queue.unsafeOffer(ended, target))
      if (typeof fault === "number") return socket.end(`HTTP/1.1 ${fault} No\r\n\r\n`)
      if (fault === "closed") return socket.destroy()
      if (fault === "mute") socket.write("HTTP/1.1 200 Connection Established\r\n\r\n")
      if (fault !== undefined) return socket.resume().on("end", () => socket.end())
      const onward = connect(Number(target.split(":").pop()), "127.0.0.2", () => {
        socket.write("HTTP/1.1 200 Connection Established\r\n\r\n")
        onward.pipe(socket).pipe(onward)
      })
      return onward.on("error", () => socket.destroy())
    })
    const port = yield* listen(server, { address: "127.0.0.1", port: 0 })
    return { tunnels, ended, url: `http://ann:s%20ecret@127.0.0.1:${port}` }
  })

const authorization = `Basic ${Buffer.from("ann:s ecret").toString("base64")}`
const elsewhere = { address: "127.0.0.2" }

const through =
  (proxies: Partial<Proxies>) =>
  <A, E, R>(effect: Effect.Effect<A, E, R>) =>
    Effect.provideService(effect, OutgoingProxies, { http: undefined, https: undefined, except: "", ...proxies })

const callUpstream = (url: string, proxies: Partial<Proxies>) =>
  Effect.flatMap(Upstream, (upstream) => upstream.post(post(url))).pipe(
    Effect.provide(Upstream.layer({ connectTimeoutSeconds: 2, idleTimeoutSeconds: 2 })),
    through(proxies)
  )

describe("a proxy of HTTP_PROXY", () => {
  it.scopedLive("is used for calls to providers, with its own password only", function* () {
    const proxy = yield* makeProxy()
    const host = yield* make((_, response) => response.end("{}"), elsewhere)
    const { status } = yield* callUpstream(host.url, { http: proxy.url })
    assert.strictEqual(status, 200)
    assert.deepStrictEqual(proxy.tunnels, [{ target: `127.0.0.2:${host.port}`, authorization }])
    assert.notProperty(host.seen[0]?.headers ?? {}, "proxy-authorization")
    assert.isDefined(host.seen[0]?.headers.authorization)
  })

  it.scopedLive("is not used for this machine and the hosts of NO_PROXY", function* () {
    const proxy = yield* makeProxy()
    const near = yield* make((_, response) => response.end("{}"))
    const far = yield* make((_, response) => response.end("{}"), elsewhere)
    yield* callUpstream(near.url, { http: proxy.url })
    yield* callUpstream(far.url, { http: proxy.url, except: "vendor.example, 127.0.0.2" })
    yield* callUpstream(far.url, { http: proxy.url, except: "*" })
    assert.deepStrictEqual(proxy.tunnels, [])
    assert.deepStrictEqual([near.connections(), far.connections()], [1, 2])
  })

  it.scopedLive("that refuses the connection is a network failure", function* () {
    const proxy = yield* makeProxy(407)
    const host = yield* make((_, response) => response.end("{}"), elsewhere)
    const failure = yield* Effect.flip(callUpstream(host.url, { http: proxy.url }))
    assert.strictEqual(failure.class, "network")
    assert.notInclude(failure.detail, "ecret")
    const fetcher = yield* fetcherOver(["127.0.0.2"]).pipe(through({ http: proxy.url }))
    const refused = yield* Effect.flip(fetcher.bytes(ask(host.url)))
    assert.strictEqual(refused.reason, "network")
    assert.include(refused.detail, "407")
    assert.strictEqual(host.connections(), 0)
  })

  it.scopedLive("that closes the connection is a network failure, and is called once", function* () {
    const proxy = yield* makeProxy("closed")
    const host = yield* make((_, response) => response.end("{}"), elsewhere)
    const failure = yield* Effect.flip(callUpstream(host.url, { http: proxy.url }))
    assert.deepStrictEqual([failure.class, failure.isUnsent], ["network", true])
    assert.lengthOf(proxy.tunnels, 1)
    const fetcher = yield* fetcherOver(["127.0.0.2"]).pipe(through({ http: proxy.url }))
    assert.strictEqual((yield* Effect.flip(fetcher.bytes(ask(host.url)))).reason, "network")
    assert.lengthOf(proxy.tunnels, 2)
  })
})

describe("a host that a proxy does not reach", () => {
  const faults: ReadonlyArray<readonly [string, Fault, string]> = [
    ["the proxy does not answer", "silent", "UND_ERR_HEADERS_TIMEOUT"],
    ["the host does not answer to TLS", "mute", "UND_ERR_CONNECT_TIMEOUT"]
  ]
  for (const [name, fault, code] of faults) {
    it.scopedLive(`is given up for another after the time to connect if ${name}`, function* () {
      const proxy = yield* makeProxy(fault)
      const layer = Upstream.layer({ connectTimeoutSeconds: 1, idleTimeoutSeconds: 60 })
      const upstream = Context.get(yield* through({ https: proxy.url })(Layer.build(layer)), Upstream)
      const failure = yield* Effect.flip(upstream.post(post("https://vendor.example")))
      assert.deepStrictEqual([failure.class, failure.isUnsent], ["timeout", true])
      assert.include(failure.detail, code)
      // Connections of failed calls do not add up while the agent lives.
      assert.strictEqual(yield* Queue.take(proxy.ended), "vendor.example:443")
    })
  }
})

describe("a file that is fetched through a proxy", () => {
  const names = (answer: string) => () => Effect.succeed([answer])

  it.scopedLive("comes from the checked address, under its own name", function* () {
    const proxy = yield* makeProxy()
    const host = yield* make((_, response) => response.end("picture"), { ...elsewhere, secure: true })
    const fetcher = yield* fetcherOver(["127.0.0.2"], { ca: certificate, names: names("127.0.0.2") }).pipe(
      through({ https: proxy.url })
    )
    const bytes = yield* fetcher.bytes(ask(`https://pictures.example:${host.port}/a.png`))
    assert.strictEqual(String(bytes), "picture")
    assert.deepStrictEqual(proxy.tunnels, [{ target: `127.0.0.2:${host.port}`, authorization }])
    assert.deepInclude(host.seen[0], { path: "/a.png", host: `pictures.example:${host.port}` })
  })

  it.scopedLive("is refused at a private address before the proxy is asked", function* () {
    const proxy = yield* makeProxy()
    const fetcher = yield* fetcherOver([], { names: names("10.0.0.1") }).pipe(through({ http: proxy.url }))
    const { reason } = yield* Effect.flip(fetcher.bytes(ask("http://pictures.example/a.png")))
    assert.strictEqual(reason, "refused")
    assert.deepStrictEqual(proxy.tunnels, [])
  })
})

describe("proxyFor", () => {
  const proxies = { http: "http://a", https: "http://b", except: ".corp.example, other.example:8443  *.third.example" }
  const cases: ReadonlyArray<readonly [string, string | undefined]> = [
    ["http://vendor.example/", "http://a"],
    ["https://vendor.example/", "http://b"],
    ["https://llm.corp.example/", undefined],
    ["https://corp.example/", undefined],
    ["https://notcorp.example/", "http://b"],
    ["https://other.example:8443/", undefined],
    ["https://other.example/", "http://b"],
    ["https://x.third.example/", undefined],
    ["http://localhost:11434/", undefined],
    ["http://[::1]:11434/", undefined]
  ]
  for (const [url, proxy] of cases) {
    it(`is ${proxy ?? "none"} for ${url}`, () => {
      assert.strictEqual(proxyFor(proxies, new URL(url)), proxy)
    })
  }

  it("uses the proxy for http for https calls if it is the only one", () => {
    const url = new URL("https://vendor.example/")
    assert.strictEqual(proxyFor({ http: "http://a", https: undefined, except: "" }, url), "http://a")
  })
})

describe("a call with a time limit", () => {
  /** Collects garbage all the time: a signal that only the call needs must survive it. */
  const collectGarbage = Effect.gen(function* () {
    setFlagsFromString("--expose-gc")
    const collect: () => void = runInNewContext("gc")
    yield* Effect.forkScoped(Effect.forever(Effect.zipRight(Effect.sync(collect), Effect.sleep("10 millis"))))
  })

  const silent = make(() => undefined, elsewhere)

  it.scopedLive("ends, although the server is silent and garbage is collected", function* () {
    yield* collectGarbage
    const { url } = yield* silent
    const error = yield* Effect.tryPromise((interrupted) =>
      abortAfter(300, interrupted, (signal) => request(url, { signal }))
    ).pipe(Effect.flip)
    assert.strictEqual(error.cause instanceof Error && error.cause.name, "TimeoutError")
  })

  it.scopedLive("ends when it is interrupted, before or during the call", function* () {
    yield* collectGarbage
    const { seen, url } = yield* silent
    const started = yield* Effect.fork(
      Effect.tryPromise((interrupted) =>
        abortAfter(3_600_000, interrupted, (signal) => request(url, { signal }).then(() => "answered"))
      )
    )
    yield* Effect.repeat(Effect.sleep("5 millis"), { until: () => seen.length > 0 })
    const exit = yield* Fiber.interrupt(started)
    assert.isTrue(Exit.isInterrupted(exit))
    const early = abortAfter(3_600_000, AbortSignal.abort(), (signal) => request(url, { signal }))
    const error = yield* Effect.flip(Effect.tryPromise(() => early))
    assert.strictEqual(error.cause instanceof Error && error.cause.name, "AbortError")
  })
})
