import { randomBytes } from "node:crypto"
import { Effect } from "effect"
import { chat, talk } from "../harness/client/HttpCalls.ts"
import { chatCatalog } from "../harness/fixtures/ChatCatalog.ts"
import * as Served from "../harness/gateway/ServedGateway.ts"
import { assert, it } from "../harness/It.ts"
import * as Provider from "../harness/upstream/ChatUpstream.ts"
import * as Upstream from "../harness/upstream/FakeUpstream.ts"
import * as Collector from "./Collector.ts"

it.scopedLive(
  "only a provider that the catalog says so of is told of the trace, with its own span as the parent",
  function* () {
    const upstream = yield* Upstream.make
    const collector = yield* Collector.make()
    const provider = { adapter: "openai-chat", base_url: upstream.url }
    const catalog = chatCatalog(
      { vendor: provider, own: { ...provider, trace_context: true } },
      { bought: [{ provider: "vendor", model: "theirs" }], hosted: [{ provider: "own", model: "ours" }] }
    )
    const env = { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url, OTEL_EXPORTER_OTLP_PROTOCOL: "http/json" }
    yield* Effect.gen(function* () {
      const customer = yield* Served.customer()
      const ask = Effect.fnUntraced(function* (body: object, reply: Upstream.Reply) {
        yield* upstream.script(reply)
        const traceparent = `00-${randomBytes(16).toString("hex")}-00f067aa0ba902b7-01`
        yield* chat(customer, body, { headers: { traceparent, tracestate: "a=b" } })
        return (yield* upstream.received).headers
      })
      const untold = yield* ask(talk("bought"), Provider.answer("hello"))
      assert.deepStrictEqual([untold["traceparent"], untold["tracestate"]], [undefined, undefined])
      const told = [
        yield* ask(talk("hosted"), Provider.answer("hello")),
        yield* ask({ ...talk("hosted"), stream: true }, Upstream.sse(Provider.delta("hello"), Provider.end))
      ]
      for (const { traceparent, tracestate } of told) {
        assert.strictEqual(tracestate, "a=b")
        const [, traceId = "", spanId] = String(traceparent).split("-")
        const spans = yield* collector.awaitTrace(traceId, "chat ours")
        assert.isTrue(spans.some((span) => span.spanId === spanId && span.name === "chat ours"))
      }
    }).pipe(Effect.provide(Served.processLayer(Effect.succeed({ catalog, env }))))
  }
)
