import { rename } from "node:fs/promises"
import net from "node:net"
import path from "node:path"
import { fileURLToPath } from "node:url"
import { SqlClient } from "@effect/sql"
import { Deferred, Effect, Either, Fiber, Schedule } from "effect"
import { LedgerAdmin } from "../../src/services/ledger/LedgerAdmin.ts"
import { openAccount } from "../harness/client/Account.ts"
import { get, openStream } from "../harness/client/ChatClient.ts"
import {
  ageHeartbeats,
  assertCharged,
  copies,
  eventually,
  moneyOf,
  times,
  waitUntil
} from "../harness/database/Money.ts"
import { Deployment, deploymentTest, type GatewayOptions } from "../harness/gateway/Deployment.ts"
import { filesLoadedBy, filesWith, program } from "../harness/gateway/GatewayProcess.ts"
import { assert, describe, it } from "../harness/It.ts"
import { isAlive } from "../harness/temporary.ts"
import { charge, either, stream } from "../harness/upstream/Replies.ts"
import * as Workers from "./WorkerProcesses.ts"

const root = fileURLToPath(new URL("../../", import.meta.url))

const two = Effect.fnUntraced(function* (options: GatewayOptions = {}) {
  const { gateway } = yield* Deployment
  const started = yield* gateway({ ...options, env: { WORKERS: "2", ...options.env } })
  yield* Workers.served(started, 2)
  return started
})

const chat = ({ secret, url }: { readonly secret: string; readonly url: string }) =>
  Workers.fetchAnew(`${url}/v1/chat/completions`, {
    headers: { authorization: `Bearer ${secret}`, "content-type": "application/json" },
    body: { model: "m1", max_tokens: 10, messages: [{ role: "user", content: "hi" }] }
  })

const metrics = (url: string) => Effect.map(Workers.fetchAnew(`${url}/metrics`), ({ text }) => text)

const servedChats = 'gateway_requests_total{surface="chat",model="m1",status="200",code=""}'

const isGone = (pid: number) => waitUntil(() => !isAlive(pid))

/** Two workers with a stream each that goes on when `more` is done. */
const streaming = Effect.fnUntraced(function* (options?: GatewayOptions) {
  const { upstream } = yield* Deployment
  const gateway = yield* two(options)
  const pids = Workers.pidsOf(gateway)
  const account = yield* openAccount({})
  const more = yield* Deferred.make<void>()
  // Connections go to the workers in turn, and each stream keeps its own.
  const streams = yield* Effect.forEach(times(4), () =>
    Effect.gen(function* () {
      yield* upstream.script(stream(Deferred.await(more)))
      const open = yield* openStream({ url: gateway.url, secret: account.secret })
      yield* open.until("Hello")
      return open
    })
  )
  return { ...gateway, ...account, gateway, pids, streams, goOn: Deferred.succeed(more, undefined) }
})

describe("two workers", () => {
  deploymentTest("answer at one address, and whichever is asked shows the metrics of both", function* ({ upstream }) {
    const sql = yield* SqlClient.SqlClient
    const gateway = yield* two()
    const { url } = gateway
    const { org, secret } = yield* openAccount({})
    yield* upstream.script(...times(20).map(() => either))
    const answers = yield* Effect.forEach(times(20), () => chat({ url, secret }), { concurrency: 4 })
    assert.isTrue(answers.every(({ status }) => status === 200))
    yield* assertCharged(org, copies(charge, 20))
    yield* eventually(
      sql<{ readonly requests: string }>`SELECT requests FROM route_health`,
      (rows) => rows.length === 2 && rows.reduce((all, { requests }) => all + Number(requests), 0) === 20
    )
    for (const _ of times(4)) assert.strictEqual(Workers.sampleOf(yield* metrics(url), servedChats), 20)

    // What a worker did is still counted when it is gone.
    const [first = 0] = Workers.pidsOf(gateway)
    process.kill(first, "SIGKILL")
    yield* Workers.served(gateway, 3)
    for (const _ of times(4)) {
      const text = yield* metrics(url)
      assert.strictEqual(Workers.sampleOf(text, servedChats), 20)
      assert.strictEqual(Workers.sampleOf(text, "gateway_in_flight"), 0)
    }
  })

  deploymentTest(
    "of which one is killed lose no charge and make none twice, and another takes its place",
    function* ({ upstream }) {
      const gateway = yield* two()
      const { url } = gateway
      const [first = 0] = Workers.pidsOf(gateway)
      const { org, secret } = yield* openAccount({ rpm: 100_000 })
      yield* upstream.script(...times(2000).map(() => either))
      const scope = yield* Effect.scope
      const chats: Array<Fiber.Fiber<Either.Either<Workers.Fetched, unknown>>> = []
      // Node forgets a connection that is on its way to a worker when it dies. Its client gives up.
      const traffic = yield* Effect.either(Effect.timeout(chat({ url, secret }), "15 seconds")).pipe(
        Effect.forkIn(scope),
        Effect.map((fiber) => chats.push(fiber)),
        Effect.schedule(Schedule.fixed("20 millis")),
        Effect.fork
      )
      yield* eventually(moneyOf(org), ({ charges }) => charges.length > 20)
      process.kill(first, "SIGKILL")
      yield* Workers.served(gateway, 3)
      yield* Effect.sleep("1 second")
      yield* Fiber.interrupt(traffic)
      const ends = yield* Effect.timeout(Fiber.join(Fiber.all(chats)), "40 seconds")
      const answers = ends.filter(Either.isRight).map(({ right }) => right.status)
      assert.deepStrictEqual([...new Set(answers)], [200])
      yield* ageHeartbeats
      yield* eventually(moneyOf(org), ({ openHolds }) => openHolds === 0)
      const { charges } = yield* moneyOf(org)
      assert.isAtLeast(charges.length, answers.length)
      assert.isAtMost(charges.length, ends.length)
      assert.deepStrictEqual((yield* (yield* LedgerAdmin).verify).violations, [])
      assert.match(gateway.stderr(), new RegExp(`\\(pid ${first}\\) ended \\(SIGKILL\\)\\. Starting a replacement`))
    },
    180_000
  )

  deploymentTest("finish what runs when they are told to stop, without waiting for each other's address", function* () {
    const { ended, goOn, org, pids, signal, stderr, streams, url } = yield* streaming()
    yield* signal("SIGTERM")
    yield* eventually(Workers.fetchAnew(`${url}/readyz`), ({ status }) => status === 503)
    assert.strictEqual((yield* Workers.fetchAnew(`${url}/healthz`)).status, 200)
    const text = yield* metrics(url)
    assert.strictEqual(Workers.sampleOf(text, "gateway_in_flight"), 4)
    yield* goOn
    for (const open of streams) assert.match(yield* open.rest, / there.*\[DONE\]\n\n$/s)
    assert.deepStrictEqual(yield* Effect.timeout(ended, "40 seconds"), { code: 0, signal: null })
    yield* Effect.forEach(pids, isGone)
    yield* assertCharged(org, copies(charge, streams.length))
    assert.notMatch(stderr(), /Stopping: reporting unready/)
    assert.lengthOf(stderr().match(/Draining: \d request/g) ?? [], 2)
  })

  deploymentTest("serve everything for SHUTDOWN_DELAY", function* ({ upstream }) {
    const { ended, signal, url } = yield* two({ env: { SHUTDOWN_DELAY: "10" } })
    const { org, secret } = yield* openAccount({})
    yield* upstream.script(...times(6).map(() => either))
    yield* signal("SIGTERM")
    yield* eventually(Workers.fetchAnew(`${url}/readyz`), ({ status }) => status === 503)
    for (const _ of times(6)) assert.strictEqual((yield* chat({ url, secret })).status, 200)
    assert.deepStrictEqual(yield* Effect.timeout(ended, "40 seconds"), { code: 0, signal: null })
    yield* assertCharged(org, copies(charge, 6))
  })

  deploymentTest("and their main process stop on a terminal's signal to all of them", function* () {
    const line = [process.execPath, program, "serve", "--workers", "2"] as const
    const { ended, goOn, signal, streams, url } = yield* streaming({
      env: { WORKERS: "1" },
      command: { line, cwd: root }
    })
    yield* signal("SIGINT")
    yield* eventually(get(`${url}/readyz`), ({ status }) => status === 503)
    yield* goOn
    for (const open of streams) assert.match(yield* open.rest, /\[DONE\]\n\n$/)
    assert.deepStrictEqual(yield* Effect.timeout(ended, "40 seconds"), { code: 0, signal: null })
  })

  deploymentTest("end at once when the main process is told to stop a second time, a second later", function* () {
    const { ended, org, pids, signal, stderr, url } = yield* streaming()
    yield* signal("SIGTERM")
    yield* eventually(Workers.fetchAnew(`${url}/readyz`), ({ status }) => status === 503)
    yield* Effect.sleep("1100 millis")
    yield* signal("SIGTERM")
    assert.deepStrictEqual(yield* Effect.timeout(ended, "40 seconds"), { code: 1, signal: null })
    yield* Effect.forEach(pids, isGone)
    assert.lengthOf(stderr().match(/again: exiting now/g) ?? [], 1)
    assert.deepInclude(yield* moneyOf(org), { openHolds: 4, charges: [] })
  })

  deploymentTest("finish what runs and stop when the main process is killed", function* () {
    const { ended, goOn, org, pids, signal, streams } = yield* streaming()
    yield* signal("SIGKILL")
    yield* goOn
    for (const open of streams) assert.match(yield* open.rest, /\[DONE\]\n\n$/)
    yield* Effect.forEach(pids, isGone)
    assert.deepStrictEqual(yield* Effect.timeout(ended, "40 seconds"), { code: null, signal: "SIGKILL" })
    yield* assertCharged(org, copies(charge, streams.length))
  })

  deploymentTest(
    "go on as one while another cannot start, which is tried less and less often",
    function* ({ directory }) {
      const gateway = yield* two()
      const [first = 0] = Workers.pidsOf(gateway)
      const catalog = path.join(directory, "catalog.yaml")
      yield* Effect.promise(() => rename(catalog, `${catalog}.away`))
      process.kill(first, "SIGKILL")
      const ends = () => gateway.stderr().match(/ended \(exit code 1\)/g)?.length ?? 0
      yield* eventually(Effect.sync(ends), (count) => count >= 2)
      for (const _ of times(4)) {
        assert.strictEqual((yield* Workers.fetchAnew(`${gateway.url}/readyz`)).status, 200)
      }
      yield* Effect.promise(() => rename(`${catalog}.away`, catalog))
      yield* Workers.served(gateway, 3)
      yield* gateway.signal("SIGTERM")
      assert.deepStrictEqual(yield* Effect.timeout(gateway.ended, "40 seconds"), { code: 0, signal: null })
    }
  )
})

describe("a start of several workers", () => {
  it("has no gateway in the process that only starts them", () => {
    const starts = [program, ...filesWith("again: exiting now")]
    assert.lengthOf(starts, 2)
    const loaded = new Set(starts.flatMap((file) => [...filesLoadedBy(file)]))
    for (const text of ["The gateway cannot listen on", "Created the database"]) {
      const files = filesWith(text)
      assert.isNotEmpty(files)
      assert.isFalse(
        files.some((file) => loaded.has(file)),
        text
      )
    }
  })

  deploymentTest("prints the demo key and the banner once, also when a worker is replaced", function* () {
    const gateway = yield* two({ env: { DATABASE_URL: "", SANDBOX: "true" } })
    const [first = 0] = Workers.pidsOf(gateway)
    process.kill(first, "SIGKILL")
    yield* Workers.served(gateway, 3)
    assert.lengthOf(gateway.stdout().match(/listening on/g) ?? [], 1)
    assert.lengthOf(gateway.stdout().match(/^ {2}ggw_/gm) ?? [], 1)
    assert.lengthOf(gateway.stderr().match(/Listening on/g) ?? [], 1)
    assert.lengthOf(gateway.stderr().match(/Created the database/g) ?? [], 1)
    yield* gateway.signal("SIGTERM")
    assert.deepStrictEqual(yield* Effect.timeout(gateway.ended, "40 seconds"), { code: 0, signal: null })
  })

  deploymentTest("that cannot be is refused as that of one process is", function* () {
    const refusal = (env: Readonly<Record<string, string>>) =>
      Effect.map(Effect.flip(two({ env })), ({ message }) => message)
    const unsold = yield* refusal({ LOCAL_KEY: "" })
    assert.match(unsold, /ended with 1:\ngateway: No model can be served: /)
    assert.lengthOf(unsold.match(/No model can be served/g) ?? [], 1)
    assert.match(
      yield* refusal({ WORKERS: "many" }),
      /ended with 1:\ngateway: WORKERS must be auto or an integer from 1 to 256\.\n$/
    )
    const taken = yield* Effect.acquireRelease(
      Effect.async<net.Server>((resume) => {
        const server = net.createServer().listen(0, "127.0.0.1", () => resume(Effect.succeed(server)))
      }),
      (server) => Effect.sync(() => server.close())
    )
    const address = taken.address()
    const PORT = String(typeof address === "object" && address !== null ? address.port : 0)
    assert.match(
      yield* refusal({ PORT }),
      new RegExp(`ended with 1:\\n(.*\\n)*gateway: 127.0.0.1:${PORT} is already in use. .*\\n$`)
    )
  })
})
