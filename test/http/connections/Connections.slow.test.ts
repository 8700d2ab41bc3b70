import net from "node:net"
import { fileURLToPath } from "node:url"
import { Effect } from "effect"
import { connectionLimits } from "../../../src/http/connections/ConnectionLimits.ts"
import { openAccount } from "../../harness/client/Account.ts"
import { ask, codeOf, get, openStream } from "../../harness/client/ChatClient.ts"
import { eventually } from "../../harness/database/Money.ts"
import { deploymentTest, type GatewayOptions } from "../../harness/gateway/Deployment.ts"
import { assert, describe, it } from "../../harness/It.ts"
import { sse } from "../../harness/upstream/FakeUpstream.ts"
import { delta } from "../../harness/upstream/Replies.ts"

const root = fileURLToPath(new URL("../../..", import.meta.url))

/** 300 descriptors make 86 connections, 43 from one address. */
const fewDescriptors = (env: Readonly<Record<string, string>> = {}): GatewayOptions => ({
  command: { line: ["sh", "-c", "ulimit -n 300; exec node dist/gateway.js serve"], cwd: root },
  env
})

const limits = connectionLimits({ trustedProxies: 0, descriptors: 300 })

const connect = (url: string, localAddress = "127.0.0.1") =>
  Effect.acquireRelease(
    Effect.async<net.Socket>((resume) => {
      const { hostname, port } = new URL(url)
      const socket = net.connect({ host: hostname, port: Number(port), localAddress })
      socket.on("error", () => {})
      socket.once("connect", () => resume(Effect.succeed(socket)))
    }),
    (socket) => Effect.sync(() => socket.destroy())
  )

/** Connections that send half a head and wait. */
const halfHeads = (url: string, count: number, localAddress?: string) =>
  Effect.replicateEffect(
    Effect.tap(connect(url, localAddress), (socket) => socket.write("GET /healthz HTTP/1.1\r\nHost: x\r\nx-slow: ")),
    count
  )

describe("the limits on connections", () => {
  it("leave descriptors for providers, database and files, and allow one address at most half", () => {
    assert.deepStrictEqual(limits, { total: 86, perAddress: 43 })
    assert.deepStrictEqual(connectionLimits({ trustedProxies: 0, descriptors: 1024 }), { total: 448, perAddress: 224 })
    assert.deepStrictEqual(connectionLimits({ trustedProxies: 0, descriptors: 1_048_576 }), {
      total: 10_000,
      perAddress: 5_000
    })
  })

  it("are the same for the address of a proxy as for all together", () => {
    assert.deepStrictEqual(connectionLimits({ trustedProxies: 1, descriptors: 300 }), { total: 86, perAddress: 86 })
  })
})

describe("half-sent heads", () => {
  deploymentTest("give way to a client that sends a whole request", function* ({ gateway, upstream }) {
    const { process, stderr, url } = yield* gateway(fewDescriptors())
    const { secret } = yield* openAccount({})
    for (let host = 1; host <= 5; host++) yield* halfHeads(url, 80, `127.0.0.${host}`)
    yield* upstream.script(sse(delta("Hello"), Effect.never))
    const stream = yield* openStream({ url, secret })
    yield* stream.until("Hello")
    for (let host = 1; host <= 5; host++) yield* halfHeads(url, 80, `127.0.0.${host}`)
    assert.strictEqual((yield* get(`${url}/healthz`)).status, 200)
    assert.strictEqual((yield* get(`${url}/readyz`)).status, 200)
    yield* stream.leave
    assert.isNull(process.exitCode)
    assert.notMatch(stderr(), /EMFILE|unexpected/i)
  })

  deploymentTest("of one address do not close the idle connections of another", function* ({ gateway }) {
    const { url } = yield* gateway(fewDescriptors())
    const idle = yield* connect(url, "127.0.0.9")
    yield* halfHeads(url, 200, "127.0.0.1")
    let heard = ""
    idle.on("data", (chunk) => (heard += String(chunk)))
    idle.write("GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
    yield* eventually(
      Effect.sync(() => heard),
      (text) => text.startsWith("HTTP/1.1 200 ")
    )
  })
})

describe("a gateway whose connections are all in use", () => {
  deploymentTest(
    "refuses one more in the envelope and accepts it when another ends",
    function* ({ gateway, upstream }) {
      const { url } = yield* gateway(fewDescriptors())
      const { secret } = yield* openAccount({})
      yield* upstream.script(...Array.from({ length: limits.perAddress }, () => sse(delta("Hello"), Effect.never)))
      const streams = yield* Effect.forEach(Array.from({ length: limits.perAddress }), () =>
        Effect.tap(openStream({ url, secret }), (stream) => stream.until("Hello"))
      )
      const refused = yield* ask({ url, secret })
      assert.strictEqual(refused.status, 503)
      assert.isNull(codeOf(refused))
      assert.include(refused.text, '"message":"The gateway is busy; retry later."')
      assert.strictEqual(refused.headers.get("retry-after"), "5")
      assert.match(refused.headers.get("x-request-id") ?? "", /^req_/)
      yield* streams[0]?.leave ?? Effect.void
      yield* eventually(get(`${url}/healthz`), ({ status }) => status === 200)
    }
  )

  deploymentTest("does not count the connections of a proxy as those of one client", function* ({ gateway, upstream }) {
    const { url } = yield* gateway(fewDescriptors({ TRUST_PROXY: "1" }))
    const { secret } = yield* openAccount({})
    const some = Array.from({ length: limits.perAddress + 5 })
    yield* upstream.script(...some.map(() => sse(delta("Hello"), Effect.never)))
    yield* Effect.forEach(some, () => Effect.tap(openStream({ url, secret }), (stream) => stream.until("Hello")))
    assert.strictEqual((yield* get(`${url}/healthz`)).status, 200)
  })
})
