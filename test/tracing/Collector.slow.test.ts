import { createServer } from "node:http"
import { Effect, Schedule } from "effect"
import { bearer, callAt } from "../harness/client/HttpCalls.ts"
import * as Served from "../harness/gateway/ServedGateway.ts"
import { ServedGateway, ServedProcess } from "../harness/gateway/ServedGateway.ts"
import { assert, describe, it } from "../harness/It.ts"
import { listen } from "../harness/Listening.ts"
import { json, silent } from "../harness/upstream/FakeUpstream.ts"
import * as Collector from "./Collector.ts"

const root = "POST /v1/chat/completions"

const chat = Effect.gen(function* () {
  const { url } = yield* ServedGateway
  const { secret } = yield* Served.customer()
  const answer = yield* callAt(`${url}/v1/chat/completions`, {
    headers: { ...bearer(secret), "content-type": "application/json" },
    body: { model: "gpt-5.2", messages: [{ role: "user", content: "hello" }] }
  })
  assert.strictEqual(answer.status, 200)
  return answer.headers.get("traceresponse")?.split("-")[1] ?? ""
})

const gateway = (endpoint: string, env: Readonly<Record<string, string>> = {}) =>
  Served.processLayer(
    Effect.succeed({
      env: { SANDBOX: "true", OTEL_EXPORTER_OTLP_ENDPOINT: endpoint, OTEL_EXPORTER_OTLP_PROTOCOL: "http/json", ...env }
    })
  )

const until = <E, R>(check: Effect.Effect<boolean, E, R>) =>
  check.pipe(
    Effect.filterOrFail((isSo) => isSo),
    Effect.retry(Schedule.intersect(Schedule.spaced("50 millis"), Schedule.recurs(400))),
    Effect.orDie
  )

const lines = (text: string, about: string) => text.split("\n").filter((line) => line.includes(about))

const stop = Effect.gen(function* () {
  const { ended, signal, stderr } = yield* ServedProcess
  yield* signal("SIGTERM")
  assert.deepStrictEqual(yield* ended, { code: 0, signal: null })
  return stderr()
})

const freePort = Effect.scoped(Effect.orDie(listen(createServer())))

describe("a collector", () => {
  it.scopedLive("that is away for a moment is named once, and gets what waited", function* () {
    const collector = yield* Collector.make()
    collector.answer((response, received) => json(collector.calls.length > 1 ? 200 : 503, {})(response, received))
    yield* Effect.gen(function* () {
      const { stderr } = yield* ServedProcess
      const traceId = yield* chat
      yield* until(Effect.sync(() => stderr().includes("Traces are sent")))
      yield* collector.awaitTrace(traceId, root)
      assert.lengthOf(lines(stderr(), "Traces cannot be sent"), 1)
      assert.include(stderr(), `${collector.url}/v1/traces: status 503`)
    }).pipe(Effect.provide(gateway(collector.url)))
  })

  it.scopedLive("that is away for long is named once, and delays no request", function* () {
    const port = yield* freePort
    yield* Effect.gen(function* () {
      const { stderr } = yield* ServedProcess
      yield* chat
      yield* until(Effect.sync(() => stderr().includes("Traces cannot be sent")))
      for (let n = 0; n < 5; n += 1) yield* chat
      assert.lengthOf(lines(yield* stop, "Traces cannot be sent"), 1)
      assert.include(stderr(), `http://127.0.0.1:${port}/v1/traces: ECONNREFUSED`)
    }).pipe(Effect.provide(gateway(`http://127.0.0.1:${port}`)))
  })

  it.scopedLive("that refuses gets a batch once and is named once", function* () {
    const collector = yield* Collector.make()
    collector.answer(json(401, {}))
    yield* Effect.gen(function* () {
      const { stderr } = yield* ServedProcess
      yield* chat
      yield* until(Effect.sync(() => stderr().includes("Traces cannot be sent")))
      yield* chat
      yield* stop
      assert.lengthOf(collector.calls, 1)
      assert.lengthOf(lines(stderr(), "Traces cannot be sent"), 1)
      assert.include(stderr(), `${collector.url}/v1/traces: status 401`)
    }).pipe(Effect.provide(gateway(collector.url)))
  })

  it.scopedLive("that never answers keeps neither requests nor the stop waiting", function* () {
    const collector = yield* Collector.make()
    collector.answer(silent)
    yield* Effect.gen(function* () {
      for (let n = 0; n < 5; n += 1) yield* chat
      yield* stop
    }).pipe(Effect.provide(gateway(collector.url)))
  })

  it.scopedLive("gets at a stop what has not been sent yet", function* () {
    const collector = yield* Collector.make()
    yield* Effect.gen(function* () {
      const traceId = yield* chat
      yield* stop
      assert.isTrue(collector.spans().some((span) => span.traceId === traceId && span.name === root))
    }).pipe(Effect.provide(gateway(collector.url)))
  })

  it.scopedLive("gets protobuf at the very URL that is named, unless a setting says otherwise", function* () {
    const collector = yield* Collector.make()
    const env = {
      OTEL_EXPORTER_OTLP_PROTOCOL: "",
      OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: `${collector.url}/own/path`,
      OTEL_SERVICE_NAME: "a-name-of-its-own"
    }
    yield* Effect.gen(function* () {
      const traceId = yield* chat
      yield* stop
      const [call] = collector.calls
      assert.deepStrictEqual([call?.path, call?.headers["content-type"]], ["/own/path", "application/x-protobuf"])
      assert.isTrue(call?.bytes.includes(Buffer.from(traceId, "hex")))
      assert.isTrue(call?.bytes.includes("a-name-of-its-own"))
    }).pipe(Effect.provide(gateway("http://127.0.0.1:1", env)))
  })

  for (const [name, value] of [
    ["OTEL_SDK_DISABLED", "true"],
    ["OTEL_TRACES_EXPORTER", "none"]
  ] as const) {
    it.scopedLive(`gets nothing with ${name}=${value}`, function* () {
      const collector = yield* Collector.make()
      yield* Effect.gen(function* () {
        assert.strictEqual(yield* chat, "")
        yield* stop
        assert.lengthOf(collector.calls, 0)
      }).pipe(Effect.provide(gateway(collector.url, { [name]: value })))
    })
  }

  it.scopedLive("gets nothing of what the sampler leaves out", function* () {
    const collector = yield* Collector.make()
    yield* Effect.gen(function* () {
      assert.strictEqual(yield* chat, "")
      yield* stop
      assert.lengthOf(collector.calls, 0)
    }).pipe(
      Effect.provide(gateway(collector.url, { OTEL_TRACES_SAMPLER: "traceidratio", OTEL_TRACES_SAMPLER_ARG: "0" }))
    )
  })
})
