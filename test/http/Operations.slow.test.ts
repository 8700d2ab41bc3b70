import { HttpServer } from "@effect/platform"
import { NodeContext } from "@effect/platform-node"
import {
  type Context,
  Effect,
  type Fiber,
  type FiberId,
  Layer,
  Logger,
  type Option,
  Redacted,
  RuntimeFlags,
  Supervisor
} from "effect"
import { Database } from "../../src/database/Database.ts"
import * as Gateway from "../../src/Gateway.ts"
import { readSettings } from "../../src/Settings.ts"
import { Failpoint, type FailpointName } from "../../src/services/runtime/Failpoint.ts"
import { Tracing } from "../../src/services/tracing/Tracing.ts"
import { openAccount, operator } from "../harness/client/Account.ts"
import { freshUrl } from "../harness/database/Postgres.ts"
import { chatCatalog } from "../harness/fixtures/ChatCatalog.ts"
import { assert, describe, it } from "../harness/It.ts"
import { temporaryDirectory } from "../harness/temporary.ts"
import * as Provider from "../harness/upstream/ChatUpstream.ts"
import * as Upstream from "../harness/upstream/FakeUpstream.ts"
import { allocatedBytes } from "./Allocation.ts"

const most = { operations: 145, tracedOperations: 155, fibers: 1, operationsAnEvent: 5, allocatedBytes: 400_000 }
const warm = 5
const counted = 15
/** Requests of each round. */
const sampled = 30

/** Counts the operations of every fiber of a gateway, and the fibers that it starts; not those of the test's own fiber. */
class Counter extends Supervisor.AbstractSupervisor<void> {
  readonly #test: FiberId.FiberId
  operations = 0
  fibers = 0
  /** Of fibers that were started since it was last set to zero. */
  fresh = 0
  readonly #fresh = new Set<unknown>()
  override readonly value = Effect.void
  constructor(test: FiberId.FiberId) {
    super()
    this.#test = test
  }
  override onStart<A, E, R>(
    _context: Context.Context<R>,
    _effect: Effect.Effect<A, E, R>,
    _parent: Option.Option<Fiber.RuntimeFiber<unknown, unknown>>,
    fiber: Fiber.RuntimeFiber<A, E>
  ): void {
    this.fibers += 1
    this.#fresh.add(fiber)
  }
  override onEffect<A, E>(fiber: Fiber.RuntimeFiber<A, E>): void {
    if (fiber.id() === this.#test) return
    this.operations += 1
    if (this.#fresh.has(fiber)) this.fresh += 1
  }
  begin(): { readonly operations: number; readonly fibers: number } {
    this.#fresh.clear()
    this.fresh = 0
    return { operations: this.operations, fibers: this.fibers }
  }
}

interface Mark {
  readonly until: string
  readonly operations: number
  readonly fibers: number
}

/** Other fibers of the gateway tick now and then, more often where the machine is busy, which only ever adds. */
const least = (numbers: ReadonlyArray<number>): number => Math.min(...numbers)

/** Effect's own tracer exports nothing. */
const tracing = Layer.effect(
  Tracing,
  Effect.map(Effect.tracer, (tracer) => ({ source: { tracer, now: () => 0n, isSampled: () => true } }))
)

const messages = [{ role: "user", content: "hello" }]
const asked = {
  "/v1/chat/completions": { messages },
  "/v1/responses": { input: messages },
  "/v1/messages": { messages }
}
type Path = keyof typeof asked

/** What the client has read of the present stream. */
const delivered = { words: 0 }

const read = async (answered: Response): Promise<void> => {
  const decoder = new TextDecoder()
  let text = ""
  for await (const chunk of answered.body ?? []) {
    text += decoder.decode(chunk, { stream: true })
    delivered.words = text.split("word ").length - 1
  }
}

/** A whole gateway in this process, in which every operation is counted. */
const bench = Effect.fnUntraced(function* ({ isTraced = false } = {}) {
  const counter = new Counter(yield* Effect.fiberId)
  const marks: Array<Mark> = []
  const mark = (until: string) => {
    marks.push({ until, operations: counter.operations, fibers: counter.fibers })
  }
  const upstream = yield* Upstream.make
  const directory = yield* temporaryDirectory
  const url = yield* freshUrl
  const environment = { DATA_DIR: directory, DATABASE_URL: url, PORT: "0", DEFAULT_RPM: "1000000", FAKE_KEY: "secret" }
  const settings = yield* readSettings(environment)
  const text = chatCatalog(
    { fake: { adapter: "openai-chat", base_url: upstream.url, credential: "FAKE_KEY" } },
    { tiny: [{ provider: "fake", model: "theirs" }] }
  )
  const stages: Partial<Record<FailpointName, string>> = {
    after_hold: "the hold is placed",
    before_settle: "the provider has answered",
    after_settle: "the charge is settled"
  }
  // As in production it is no operation.
  const reach = (name: FailpointName) => {
    mark(stages[name] ?? name)
    return Effect.void
  }
  const context = yield* Layer.build(
    Gateway.layer({
      settings,
      readCatalog: Effect.succeed({ source: { file: "catalog.yaml", text }, environment })
    }).pipe(
      Layer.provideMerge(operator),
      Layer.provideMerge(Database.layerUrl(Redacted.make(url))),
      Layer.provide(Layer.succeed(Failpoint, { reach })),
      Layer.provide(isTraced ? tracing : Layer.empty),
      Layer.provide(NodeContext.layer),
      Layer.provide(Layer.setTracerEnabled(false)),
      Layer.provide(RuntimeFlags.disableRuntimeMetrics),
      Layer.provide(RuntimeFlags.enableOpSupervision),
      Layer.provide(Supervisor.addSupervisor(counter)),
      Layer.provide(Logger.remove(Logger.defaultLogger))
    )
  )
  const { secret } = yield* Effect.provide(openAccount({}), context)
  const { address } = yield* Effect.provide(HttpServer.HttpServer, context)
  const port = address._tag === "TcpAddress" ? address.port : 0
  const ask = Effect.fnUntraced(function* (stream: boolean, reply: Upstream.Reply, path: Path) {
    yield* upstream.script((response, received) => {
      mark("the provider is asked")
      return reply(response, received)
    })
    delivered.words = 0
    const began = counter.begin()
    marks.length = 0
    const answered = yield* Effect.promise(() =>
      fetch(`http://127.0.0.1:${port}${path}`, {
        method: "POST",
        headers: { authorization: `Bearer ${secret}`, "content-type": "application/json" },
        body: JSON.stringify({ model: "tiny", stream, ...asked[path] })
      })
    )
    assert.strictEqual(answered.status, 200)
    yield* Effect.promise(() => read(answered))
    mark("the answer is read")
    const phases = marks.map(({ fibers, operations, until }, at) => ({
      until,
      operations: operations - (marks[at - 1] ?? began).operations,
      fibers: fibers - (marks[at - 1] ?? began).fibers
    }))
    return {
      phases,
      operations: counter.operations - began.operations,
      fibers: counter.fibers - began.fibers,
      own: counter.fresh
    }
  })
  return Effect.fnUntraced(function* (stream: boolean, reply: Upstream.Reply, path: Path = "/v1/chat/completions") {
    for (let n = 0; n < warm; n += 1) yield* ask(stream, reply, path)
    const all: Array<Effect.Effect.Success<ReturnType<typeof ask>>> = []
    for (let n = 0; n < counted; n += 1) all.push(yield* ask(stream, reply, path))
    const phases = (all[0]?.phases ?? []).map(({ until }, at) => ({
      until,
      operations: least(all.map((one) => one.phases[at]?.operations ?? 0)),
      fibers: least(all.map((one) => one.phases[at]?.fibers ?? 0))
    }))
    return {
      phases,
      operations: least(all.map(({ operations }) => operations)),
      /** Without what fibers do that serve all requests. */
      own: least(all.map(({ own }) => own)),
      fibers: least(all.map(({ fibers }) => fibers)),
      /** Bytes of one request: mostly not compiled yet, so more than under load. */
      allocates: Effect.map(
        Effect.replicateEffect(allocatedBytes(Effect.repeatN(ask(stream, reply, path), sampled - 1)), 5),
        (rounds) => least(rounds) / sampled
      )
    }
  })
})

/** A stream whose events come one by one: each waits until the client has read those before it. */
const streamOf = (events: number): Upstream.Reply =>
  Upstream.sse(
    ...Array.from({ length: events }, (_, n) => [
      Provider.delta(`word ${n} `),
      Effect.repeat(Effect.sleep("2 millis"), { until: () => delivered.words > n })
    ]).flat(),
    Provider.end
  )

describe("the operations of a request", () => {
  it.scopedLive("that is answered in one piece stay within their budget", function* () {
    const measure = yield* bench()
    const { allocates, fibers, operations, phases } = yield* measure(false, Provider.answer("hello"))
    console.table([...phases, { until: "in all", operations, fibers }])
    const bytes = yield* allocates
    console.log(`allocated by a request: ${Math.round(bytes / 1000)} kB`)
    assert.isAtMost(operations, most.operations)
    assert.isAtMost(fibers, most.fibers)
    assert.isAtMost(bytes, most.allocatedBytes)
  })

  it.scopedLive("that is streamed grow little with each event", function* () {
    const measure = yield* bench()
    const few = yield* measure(true, streamOf(5))
    const many = yield* measure(true, streamOf(25))
    const each = (many.own - few.own) / 20
    console.table([...few.phases, { until: "in all", operations: few.operations, fibers: few.fibers }])
    console.log(`operations for each further event: ${each}`)
    assert.isAtMost(each, most.operationsAnEvent)
  })

  it.scopedLive("that is traced are few more", function* () {
    const measure = yield* bench({ isTraced: true })
    const { operations } = yield* measure(false, Provider.answer("hello"))
    const few = yield* measure(true, streamOf(5))
    const many = yield* measure(true, streamOf(25))
    const each = (many.own - few.own) / 20
    console.log(`operations of a traced answer: ${operations}, of a traced stream's event: ${each}`)
    assert.isAtMost(operations, most.tracedOperations)
    assert.isAtMost(each, most.operationsAnEvent)
  })

  it.scopedLive("in the Responses convention stay within the same budget", function* () {
    const measure = yield* bench()
    const { fibers, operations } = yield* measure(false, Provider.answer("hello"), "/v1/responses")
    const few = yield* measure(true, streamOf(5), "/v1/responses")
    const many = yield* measure(true, streamOf(25), "/v1/responses")
    const each = (many.own - few.own) / 20
    console.log(`operations of a response: ${operations}, of a streamed event: ${each}`)
    assert.isAtMost(operations, most.operations)
    assert.isAtMost(fibers, most.fibers)
    assert.isAtMost(each, most.operationsAnEvent)
  })

  it.scopedLive("in the Messages convention stay within the same budget", function* () {
    const measure = yield* bench()
    const { fibers, operations } = yield* measure(false, Provider.answer("hello"), "/v1/messages")
    const few = yield* measure(true, streamOf(5), "/v1/messages")
    const many = yield* measure(true, streamOf(25), "/v1/messages")
    const each = (many.own - few.own) / 20
    console.log(`operations of a message: ${operations}, of a streamed event: ${each}`)
    assert.isAtMost(operations, most.operations)
    assert.isAtMost(fibers, most.fibers)
    assert.isAtMost(each, most.operationsAnEvent)
  })
})
