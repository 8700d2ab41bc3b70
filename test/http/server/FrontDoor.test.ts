import { Context, Effect, Layer, Redacted } from "effect"
import { Database } from "../../../src/database/Database.ts"
import type { FailpointName } from "../../../src/services/runtime/Failpoint.ts"
import { operator } from "../../harness/client/Account.ts"
import { chatApis } from "../../harness/client/ChatApis.ts"
import { post, talk } from "../../harness/client/HttpCalls.ts"
import { eventually } from "../../harness/database/Money.ts"
import { freshUrl } from "../../harness/database/Postgres.ts"
import { customer, logged, ServedGateway, serveHere } from "../../harness/gateway/ServedGateway.ts"
import { assert, withLayer } from "../../harness/It.ts"
import { directoryWith } from "../../harness/temporary.ts"

/** What happens at each step of requests until it is told otherwise; tests of the file run one after the other. */
const steps: Partial<Record<FailpointName, Effect.Effect<void>>> = {}

class Stop extends Context.Tag("test/Stop")<Stop, Effect.Effect<void>>() {}

const gateway = Layer.unwrapScoped(
  Effect.gen(function* () {
    const database = yield* freshUrl
    const directory = yield* directoryWith({})
    const env = { DATABASE_URL: database, DATA_DIR: directory, SANDBOX: "true" }
    const served = serveHere(env, { reach: (name) => Effect.suspend(() => steps[name] ?? Effect.void) })
    return Layer.scopedContext(
      Effect.map(served, ({ abort, url }) => Context.make(ServedGateway, { url }).pipe(Context.add(Stop, abort)))
    ).pipe(Layer.merge(operator), Layer.provideMerge(Database.layerUrl(Redacted.make(database), { maxConnections: 2 })))
  })
)

const during = <A, E, R>(name: FailpointName, step: Effect.Effect<void>, work: Effect.Effect<A, E, R>) =>
  Effect.acquireUseRelease(
    Effect.sync(() => (steps[name] = step)),
    () => work,
    () => Effect.sync(() => delete steps[name])
  )

const draw = post("/v1/images/generations")
const picture = { model: "gpt-image-2", prompt: "a cat" }
const hello = talk("gpt-5.2")
const bug = Effect.dieMessage("a bug")

withLayer(gateway)("the front door", (it) => {
  it.effect("answers what was charged, though a stop interrupts it then", function* () {
    const stop = yield* Stop
    for (const step of ["before_settle", "after_settle"] as const) {
      for (const way of chatApis) {
        for (const stream of [false, true]) {
          const account = yield* customer()
          const answer = yield* during(step, stop, way.send(account, { ...hello, stream }))
          assert.strictEqual(answer.status, 200, `${step}: ${answer.text}`)
          assert.include(answer.text, "sandbox")
          assert.isAbove(Number(yield* account.spent), 0)
        }
      }
      const account = yield* customer()
      const drawn = yield* during(step, stop, draw(account, picture))
      assert.strictEqual(drawn.status, 200, drawn.text)
      assert.isAbove(Number(yield* account.spent), 0)
    }
  })

  it.effect("answers what a stop interrupts, and charges nothing", function* () {
    const stop = yield* Stop
    for (const way of chatApis) {
      const account = yield* customer()
      const answer = yield* during("after_hold", stop, way.send(account, hello))
      assert.strictEqual(answer.status, 503, answer.text)
      assert.strictEqual(yield* account.spent, 0n)
    }
    const account = yield* customer()
    const refused = yield* during("after_hold", stop, draw(account, picture))
    assert.strictEqual(refused.status, 503, refused.text)
    assert.strictEqual(yield* account.spent, 0n)
  })

  it.effect("gives back the charge of what fails after it", function* () {
    for (const ask of [...chatApis.map((way) => way.send), () => undefined]) {
      const account = yield* customer()
      const answer = yield* during("after_settle", bug, ask(account, hello) ?? draw(account, picture))
      assert.strictEqual(answer.status, 500, answer.text)
      yield* eventually(account.spent, (spent) => spent === 0n)
      assert.strictEqual((yield* logged(answer.headers.get("x-request-id"))).status, 500)
    }
  })

  it.effect("gives back the charge of a stream that breaks after it", function* () {
    for (const way of chatApis) {
      const account = yield* customer()
      const answer = yield* during("after_settle", bug, way.send(account, { ...hello, stream: true }))
      assert.strictEqual(answer.status, 200, answer.text)
      yield* eventually(account.spent, (spent) => spent === 0n)
      const requestId = answer.headers.get("x-request-id")
      yield* eventually(logged(requestId), ({ code }) => code === "stream_error")
    }
  })

  it.effect("names the route of an answer that could not be charged", function* () {
    for (const ask of [...chatApis.map((way) => way.send), () => undefined]) {
      const account = yield* customer()
      const answer = yield* during("before_settle", bug, ask(account, hello) ?? draw(account, picture))
      assert.strictEqual(answer.status, 500, answer.text)
      const { route, status } = yield* logged(answer.headers.get("x-request-id"))
      assert.deepStrictEqual([status, typeof route], [500, "string"])
      yield* eventually(account.spent, (spent) => spent === 0n)
    }
  })
})
