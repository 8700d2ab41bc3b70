import { existsSync } from "node:fs"
import net from "node:net"
import path from "node:path"
import { Deferred, Duration, Effect, Fiber } from "effect"
import { OrganizationScope } from "../../src/domain/OrganizationScope.ts"
import { RequestLog } from "../../src/services/telemetry/RequestLog.ts"
import { openAccount } from "../harness/client/Account.ts"
import { chatApis } from "../harness/client/ChatApis.ts"
import { ask, get, openStream } from "../harness/client/ChatClient.ts"
import { type Refusal, refusals } from "../harness/client/HttpCalls.ts"
import { assertCharged, eventually, lock, moneyOf, waitingForLock, waitUntil } from "../harness/database/Money.ts"
import { Deployment, deploymentTest, type GatewayOptions } from "../harness/gateway/Deployment.ts"
import { assert, describe } from "../harness/It.ts"
import { isAlive } from "../harness/temporary.ts"
import { silent, sse } from "../harness/upstream/FakeUpstream.ts"
import { charge, delta, either, finish, stream } from "../harness/upstream/Replies.ts"
import { chatUnderWay } from "./ChatsUnderWay.ts"
import { checkOutInto, root } from "./Checkout.ts"

const restarting: Refusal = {
  status: 503,
  message: "The gateway is restarting; retry.",
  type: "service_unavailable",
  code: null,
  retryAfter: "5"
}

/** A gateway in the middle of a stream that goes on when `more` is done. */
const streaming = Effect.fnUntraced(function* (options?: GatewayOptions) {
  const { gateway, upstream } = yield* Deployment
  const running = yield* gateway(options)
  const account = yield* openAccount({})
  const more = yield* Deferred.make<void>()
  yield* upstream.script(stream(Deferred.await(more)))
  const open = yield* openStream({ url: running.url, secret: account.secret })
  yield* open.until("Hello")
  yield* upstream.received
  return { ...running, ...account, open, goOn: Deferred.succeed(more, undefined) }
})

const connected = Effect.fnUntraced(function* (url: string, text: string) {
  const { hostname, port } = new URL(url)
  const socket = yield* Effect.acquireRelease(
    Effect.async<net.Socket>((resume) => {
      const made = net.connect({ host: hostname, port: Number(port) }, () => resume(Effect.succeed(made)))
      made.on("error", () => {})
    }),
    (made) => Effect.sync(() => made.destroy())
  )
  let heard = ""
  socket.on("data", (chunk) => (heard += String(chunk)))
  socket.write(text)
  return { socket, heard: Effect.sync(() => heard) }
})

describe.concurrent.each(["SIGTERM", "SIGINT"] as const)("%s", (signal) => {
  deploymentTest("lets what runs finish, takes nothing new, and leaves nothing undone", function* () {
    const { ended, goOn, open, org, secret, signal: send, url } = yield* streaming()
    assert.strictEqual((yield* get(`${url}/readyz`)).status, 200)
    yield* send(signal)
    // What a terminal and npm make of one Ctrl-C.
    yield* send(signal)
    yield* eventually(get(`${url}/readyz`), ({ status }) => status === 503)
    assert.strictEqual((yield* get(`${url}/healthz`)).status, 200)
    for (const way of chatApis) {
      const refused = yield* ask({ url, secret, way })
      way.assertRefused(refused, restarting)
      assert.deepStrictEqual(
        ["x-ratelimit-limit", "x-ratelimit-remaining", "connection"].map((name) => refused.headers.get(name)),
        ["600", "599", "close"]
      )
    }
    yield* goOn
    assert.match(yield* open.rest, / there.*\[DONE\]\n\n$/s)
    assert.deepStrictEqual(yield* Effect.timeout(ended, "10 seconds"), { code: 0, signal: null })
    yield* assertCharged(org, [charge])
    const rows = yield* Effect.flatMap(RequestLog, (log) => log.list(OrganizationScope.all, { org, limit: 10 }))
    assert.deepInclude(
      rows.map((row): ReadonlyArray<unknown> => [row.status, row.code, row.charge]),
      [200, null, charge]
    )
  })

  deploymentTest("a second time, a second later, ends the process at once", function* () {
    const { ended, org, signal: send, url } = yield* streaming()
    yield* send(signal)
    yield* eventually(get(`${url}/readyz`), ({ status }) => status === 503)
    yield* Effect.sleep("1100 millis")
    yield* send(signal)
    const end = yield* Effect.timeout(ended, "10 seconds")
    assert.deepStrictEqual(end, { code: 1, signal: null })
    assert.deepInclude(yield* moneyOf(org), { openHolds: 1, charges: [] })
  })
})

describe.concurrent("a stop", () => {
  deploymentTest("serves everything for SHUTDOWN_DELAY while it is unready", function* ({ gateway, upstream }) {
    const { ended, signal, stderr, url } = yield* gateway({ env: { SHUTDOWN_DELAY: "10" } })
    const { org, secret } = yield* openAccount({})
    yield* upstream.script(either)
    yield* signal("SIGTERM")
    yield* eventually(get(`${url}/readyz`), ({ status }) => status === 503)
    const served = yield* ask({ url, secret })
    assert.deepStrictEqual([served.status, served.headers.get("connection")], [200, "close"])
    assert.deepStrictEqual(yield* Effect.timeout(ended, "1 minute"), { code: 0, signal: null })
    yield* assertCharged(org, [charge])
    for (const line of [/Listening on http/, /Stopping: reporting unready/, /Draining: 0 requests/, /Stopped/]) {
      assert.match(stderr(), line)
    }
  })

  deploymentTest("ends what outlasts its patience, without charge", function* ({ gateway, upstream }) {
    const { ended, signal, url } = yield* gateway({ env: { SHUTDOWN_TIMEOUT: "1" } })
    const { org, secret } = yield* openAccount({})
    const underWay = yield* Effect.forEach(
      chatApis,
      Effect.fnUntraced(function* (way) {
        yield* upstream.script(sse(delta("Hello"), Effect.never), silent)
        const open = yield* openStream({ url, secret, way })
        yield* open.until("Hello")
        yield* upstream.received
        const json = yield* Effect.fork(ask({ url, secret, way }))
        yield* upstream.received
        return { way, open, json }
      })
    )
    yield* signal("SIGTERM")
    for (const { json, open, way } of underWay) {
      way.assertBroken({ status: open.status, text: yield* open.rest }, refusals.upstream)
      way.assertRefused(yield* Fiber.join(json), restarting)
    }
    assert.deepStrictEqual(yield* Effect.timeout(ended, "10 seconds"), { code: 0, signal: null })
    yield* assertCharged(org, [])
    const rows = yield* Effect.flatMap(RequestLog, (log) => log.list(OrganizationScope.all, { org, limit: 10 }))
    assert.sameDeepMembers(
      rows.map((row): ReadonlyArray<unknown> => [row.stream, row.status, row.code, row.charge]),
      chatApis.flatMap(() => [
        [true, 200, "stream_error", 0n],
        [false, 503, null, 0n]
      ])
    )
  })

  deploymentTest("charges whoever left at a stream's end, though it still waits for its usage", function* (deployed) {
    const { gateway, upstream } = deployed
    const { ended, signal, url } = yield* gateway({ env: { SHUTDOWN_TIMEOUT: "1" } })
    const { org, secret } = yield* openAccount({})
    yield* upstream.script(sse(delta("Hello there") + finish, Effect.never))
    const open = yield* openStream({ url, secret })
    yield* open.until("there")
    yield* open.leave
    const { closed } = yield* upstream.received
    yield* signal("SIGTERM")
    assert.deepStrictEqual(yield* Effect.timeout(ended, "20 seconds"), { code: 0, signal: null })
    yield* closed
    const [row, ...others] = yield* Effect.flatMap(RequestLog, (log) =>
      log.list(OrganizationScope.all, { org, limit: 10 })
    )
    assert.lengthOf(others, 0)
    assert.deepInclude(row, { status: 499, code: "client_closed", stream: true })
    assert.isAbove(row?.completionTokens ?? 0, 0)
    yield* assertCharged(org, [row?.charge ?? 0n])
    assert.isTrue((row?.charge ?? 0n) > 0n)
  })

  deploymentTest("does not wait for a client that reads nothing", function* ({ gateway, upstream }) {
    const timings = { settleWithin: Duration.seconds(3), abortWithin: Duration.seconds(4) }
    const { ended, signal, url } = yield* gateway({ timings, env: { SHUTDOWN_TIMEOUT: "1" } })
    const { org, secret } = yield* openAccount({})
    const chunk = delta("x".repeat(100_000))
    yield* upstream.script(sse(...Array.from({ length: 400 }, () => chunk), Effect.never))
    const body = JSON.stringify({
      model: "m1",
      stream: true,
      max_tokens: 10,
      messages: [{ role: "user", content: "hi" }]
    })
    const { socket } = yield* connected(
      url,
      `POST /v1/chat/completions HTTP/1.1\r\nhost: gateway\r\nauthorization: Bearer ${secret}\r\ncontent-length: ${body.length}\r\n\r\n${body}`
    )
    yield* Effect.async<void>((resume) => void socket.once("data", () => resume(Effect.sync(() => socket.pause()))))
    yield* Effect.sleep("1 second")
    yield* signal("SIGTERM")
    assert.deepStrictEqual(yield* Effect.timeout(ended, "40 seconds"), { code: 0, signal: null })
    yield* assertCharged(org, [])
  })

  deploymentTest("serves on, and ends, though the database says nothing of others", function* ({ door, gateway }) {
    const { freeze, url } = yield* door
    const running = yield* gateway({ env: { SHUTDOWN_TIMEOUT: "1", DATABASE_URL: url } })
    const { ended, signal, stderr } = running
    yield* freeze
    yield* signal("SIGTERM")
    yield* waitUntil(() => stderr().includes("Stopping: reporting unready, serving for another 5s"))
    assert.strictEqual((yield* get(`${running.url}/healthz`)).status, 200)
    assert.strictEqual((yield* get(`${running.url}/readyz`)).status, 503)
    assert.deepStrictEqual(yield* Effect.timeout(ended, "40 seconds"), { code: 0, signal: null })
    assert.match(stderr(), /Stopping: reporting unready, serving for another 5s[^]*Draining/)
  })

  for (const isStream of [false, true]) {
    deploymentTest(
      `in the middle of a settle charges only who is answered (stream: ${isStream})`,
      function* ({ gateway }) {
        const { ended, signal, url } = yield* gateway({ env: { SHUTDOWN_TIMEOUT: "1" } })
        const { org, secret } = yield* openAccount({})
        const { answer, chat: asked } = yield* chatUnderWay({ url, secret, stream: isStream })
        const { unlock } = yield* lock(org)
        yield* answer
        yield* waitingForLock("generation-gateway")
        yield* signal("SIGTERM")
        yield* Effect.sleep("2 seconds")
        yield* unlock
        const { status, text } = yield* Fiber.join(asked)
        assert.strictEqual(status, 200)
        assert.match(text, isStream ? /\[DONE\]\n\n$/ : /Hello there/)
        assert.deepStrictEqual(yield* Effect.timeout(ended, "10 seconds"), { code: 0, signal: null })
        yield* assertCharged(org, [charge])
        const rows = yield* Effect.flatMap(RequestLog, (log) => log.list(OrganizationScope.all, { org, limit: 10 }))
        assert.deepStrictEqual(
          rows.map((row): ReadonlyArray<unknown> => [row.status, row.code, row.charge]),
          [[200, null, charge]]
        )
      }
    )
  }

  deploymentTest("does not wait for connections on which nothing runs", function* ({ gateway }) {
    const { ended, signal, url } = yield* gateway({ env: { SHUTDOWN_TIMEOUT: "30" } })
    const { org, secret } = yield* openAccount({})
    const idle = yield* connected(url, "GET /healthz HTTP/1.1\r\nhost: gateway\r\n\r\n")
    yield* eventually(idle.heard, (text) => text.includes(`"ok"`))
    yield* connected(url, "GET /healthz HTTP/1.1\r\nhost: gat")
    yield* connected(
      url,
      `POST /v1/chat/completions HTTP/1.1\r\nhost: gateway\r\nauthorization: Bearer ${secret}\r\ncontent-length: 100\r\n\r\n{"model":`
    )
    yield* eventually(get(`${url}/metrics`), ({ text }) => /gateway_in_flight(\{\})? 1\b/.test(text))
    yield* signal("SIGTERM")
    assert.deepStrictEqual(yield* Effect.timeout(ended, "10 seconds"), { code: 0, signal: null })
    yield* assertCharged(org, [])
  })

  deploymentTest("of a shell's process group reaches the gateway through its shell", function* () {
    const line = "exec bin/gateway serve"
    const { ended, goOn, open, org, process, signal, stderr } = yield* streaming({
      command: { line: ["sh", "-c", line], cwd: root }
    })
    yield* signal("SIGINT")
    yield* waitUntil(() => stderr().includes("1 request is running"))
    yield* goOn
    assert.match(yield* open.rest, /\[DONE\]\n\n$/)
    assert.deepStrictEqual(yield* Effect.timeout(ended, "10 seconds"), { code: 0, signal: null })
    yield* waitUntil(() => !isAlive(-(process.pid ?? 0)))
    yield* assertCharged(org, [charge])
  })

  deploymentTest(
    "of npm start, with the embedded database in it, finishes what runs and leaves nothing behind",
    function* ({ directory, gateway, upstream }) {
      yield* checkOutInto(directory)
      const running = yield* gateway({ command: { line: ["npm", "start"], cwd: directory }, env: { DATABASE_URL: "" } })
      const secret = /ggw_\S+/.exec(running.stdout())?.[0] ?? assert.fail("no key was printed")
      const postmaster = path.join(directory, ".data/postgres/data/postmaster.pid")
      assert.isTrue(existsSync(postmaster))
      const more = yield* Deferred.make<void>()
      yield* upstream.script(stream(Deferred.await(more)))
      const asked = yield* openStream({ url: running.url, secret })
      yield* asked.until("Hello")
      yield* running.signal("SIGINT")
      yield* eventually(get(`${running.url}/readyz`), ({ status }) => status === 503)
      yield* Deferred.succeed(more, undefined)
      assert.match(yield* asked.rest, /\[DONE\]\n\n$/)
      yield* Effect.timeout(running.ended, "15 seconds")
      // A zombie counts until somebody reaps it.
      yield* waitUntil(() => !isAlive(-(running.process.pid ?? 0)))
      yield* waitUntil(() => !existsSync(postmaster))
    }
  )
})
