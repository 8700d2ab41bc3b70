import { Context, Effect, Layer, Schema } from "effect"
import { bearer, callAt, type Sent } from "../harness/client/HttpCalls.ts"
import * as Served from "../harness/gateway/ServedGateway.ts"
import { assert, withLayer } from "../harness/It.ts"
import * as Collector from "./Collector.ts"

const kinds = { internal: 1, server: 2, client: 3 }
const ok = 1
const failed = 2
const film = "veo-3.1-generate-001"
const hushed = { prompt: "hush-prompt", header: "hush-collector-key", query: "hush-query", state: "vendor=hushed" }
const moved = `${hushed.prompt} [sandbox status=503 routes=1]`

class Tap extends Context.Tag("test/Tap")<Tap, Collector.Collector>() {}

const gateway = Served.processLayer(
  Effect.map(Tap, ({ url }) => ({
    env: {
      SANDBOX: "true",
      OTEL_EXPORTER_OTLP_ENDPOINT: url,
      OTEL_EXPORTER_OTLP_HEADERS: `x-key=${hushed.header}`,
      OTEL_EXPORTER_OTLP_PROTOCOL: "http/json",
      OTEL_RESOURCE_ATTRIBUTES: "deployment.environment.name=test"
    }
  }))
).pipe(Layer.provideMerge(Layer.scoped(Tap, Collector.make())))

const traceIdOf = (headers: Headers): string => headers.get("traceresponse")?.split("-")[1] ?? "none"

const post = Effect.fnUntraced(function* (path: string, body: object, sent: Sent = {}) {
  const { url } = yield* Served.ServedGateway
  const customer = yield* Served.customer()
  const answer = yield* callAt(`${url}/v1/${path}?token=${hushed.query}`, {
    ...sent,
    body,
    headers: { ...bearer(customer.secret), "content-type": "application/json", ...sent.headers }
  })
  return { ...answer, customer, traceId: traceIdOf(answer.headers) }
})

const collect = (traceId: string, last: string) => Effect.flatMap(Tap, (tap) => tap.awaitTrace(traceId, last))

const named = (spans: ReadonlyArray<Collector.CollectedSpan>, name: string) => {
  const span = spans.find((one) => one.name === name)
  assert.isDefined(span, `${name} among ${spans.map((one) => one.name).join(", ")}`)
  return span
}

/** Names under the root, in the order of their beginnings. */
const childrenOf = (spans: ReadonlyArray<Collector.CollectedSpan>, root: Collector.CollectedSpan) =>
  spans
    .filter(({ parentSpanId }) => parentSpanId === root.spanId)
    .toSorted((a, b) => Number(a.startTimeUnixNano - b.startTimeUnixNano))

const chatBody = (content: string, more: object = {}) => ({
  model: "gpt-5.2",
  messages: [{ role: "user", content }],
  ...more
})

const Id = Schema.parseJson(Schema.Struct({ id: Schema.String }))

withLayer(gateway)("a trace", (it) => {
  for (const stream of [false, true]) {
    it.effect(
      `of a ${stream ? "stream" : "chat"} has admission, each attempt and the settlement under its root`,
      function* () {
        const route = "POST /v1/chat/completions"
        const { customer, headers, traceId } = yield* post("chat/completions", chatBody(moved, { stream }))
        const spans = yield* collect(traceId, route)
        const root = named(spans, route)
        assert.isUndefined(root.parentSpanId)
        assert.strictEqual(root.kind, kinds.server)
        assert.deepStrictEqual(root.attributes, {
          "http.request.method": "POST",
          "http.route": "/v1/chat/completions",
          "http.response.status_code": 200,
          "gateway.request_id": headers.get("x-request-id") ?? "",
          "gateway.surface": "chat",
          "gateway.organization_id": customer.org,
          "gateway.model": "gpt-5.2",
          "gateway.stream": stream
        })
        assert.strictEqual(root.resource["service.name"], "generation-gateway")
        assert.strictEqual(root.resource["deployment.environment.name"], "test")

        const children = childrenOf(spans, root)
        assert.deepStrictEqual(
          children.map(({ name }) => name),
          ["admission", "chat gpt-5.2", "chat gpt-5.2", "settle"]
        )
        assert.lengthOf(spans, 5)
        const [, first, second, settle] = children
        assert.include(first?.attributes, {
          "gen_ai.operation.name": "chat",
          "gen_ai.provider.name": "sandbox",
          "gen_ai.request.model": "gpt-5.2",
          "gateway.route": "gpt-5.2@sandbox",
          "gateway.outcome": "retry",
          "error.type": "retry",
          "http.response.status_code": 503
        })
        assert.deepStrictEqual([first?.kind, first?.status.code], [kinds.client, failed])
        assert.notProperty(first?.attributes, "status.interrupted")
        assert.include(second?.attributes, { "gen_ai.provider.name": "sandbox-b", "gateway.outcome": "ok" })
        assert.isAbove(Number(second?.attributes["gen_ai.usage.input_tokens"]), 0)
        assert.isAbove(Number(second?.attributes["gen_ai.usage.output_tokens"]), 0)
        assert.isTrue((second?.endTimeUnixNano ?? 0n) <= (settle?.startTimeUnixNano ?? 0n))
        for (const one of children) {
          assert.isTrue(one.startTimeUnixNano >= root.startTimeUnixNano && one.endTimeUnixNano <= root.endTimeUnixNano)
        }
      }
    )
  }

  it.effect("of an image shows both attempts", function* () {
    const route = "POST /v1/images/generations"
    const { traceId } = yield* post("images/generations", { model: "gpt-image-2", prompt: moved })
    const spans = yield* collect(traceId, route)
    const children = childrenOf(spans, named(spans, route))
    assert.deepStrictEqual(
      children.map(({ attributes, name }) => [name, attributes["gateway.outcome"], attributes["gen_ai.output.type"]]),
      [
        ["admission", undefined, undefined],
        ["generate_content gpt-image-2", "retry", "image"],
        ["generate_content gpt-image-2", "ok", "image"],
        ["settle", undefined, undefined]
      ]
    )
  })

  it.effect("of a video goes on until its clip is there", function* () {
    const route = "POST /v1/videos"
    const { customer, text, traceId } = yield* post("videos", { model: film, prompt: moved })
    const spans = yield* collect(traceId, "video")
    const root = named(spans, route)
    assert.strictEqual(root.attributes["http.response.status_code"], 202)
    const children = childrenOf(spans, root)
    assert.deepStrictEqual(
      children.map(({ attributes, name }) => `${name} ${attributes["gateway.outcome"] ?? ""}`.trim()).toSorted(),
      ["admission", "download", `generate_content ${film} ok`, `generate_content ${film} retry`, "settle", "video"]
    )
    const video = named(spans, "video")
    assert.include(video.attributes, {
      "gateway.video_id": (yield* Schema.decode(Id)(text)).id,
      "gateway.model": film,
      "gateway.organization_id": customer.org,
      "gateway.route": `${film}@sandbox-b`
    })
    assert.isTrue(video.endTimeUnixNano > root.endTimeUnixNano)
  })

  it.effect("that a client has begun goes on, and ends where the client did not sample it", function* () {
    const traceId = "4bf92f3577b34da6a3ce929d0e0e4736"
    const context = (flags: string) => ({
      headers: { traceparent: `00-${traceId}-00f067aa0ba902b7-${flags}`, tracestate: hushed.state }
    })
    const unsampled = yield* post("chat/completions", chatBody(hushed.prompt), context("00"))
    assert.isNull(unsampled.headers.get("traceresponse"))
    const sampled = yield* post("chat/completions", chatBody(hushed.prompt), context("01"))
    assert.strictEqual(sampled.traceId, traceId)
    const spans = yield* collect(traceId, "POST /v1/chat/completions")
    assert.lengthOf(spans, 4)
    const root = named(spans, "POST /v1/chat/completions")
    assert.strictEqual(root.parentSpanId, "00f067aa0ba902b7")
    assert.strictEqual(root.attributes["gateway.request_id"], sampled.headers.get("x-request-id"))
  })

  it.effect("of a refused request names its code, and no model that is not in the catalog", function* () {
    const { traceId } = yield* post("chat/completions", { ...chatBody("hi"), model: hushed.prompt })
    const spans = yield* collect(traceId, "POST /v1/chat/completions")
    const root = named(spans, "POST /v1/chat/completions")
    assert.include(root.attributes, { "http.response.status_code": 404, "gateway.error_code": "model_not_found" })
    assert.notProperty(root.attributes, "gateway.model")
    assert.strictEqual(root.status.code, ok)
    assert.strictEqual(named(spans, "admission").status.code, failed)
    const { url } = yield* Served.ServedGateway
    const stranger = yield* callAt(`${url}/v1/chat/completions`, {
      headers: bearer("ggw_hush"),
      body: chatBody("hi")
    })
    const [refused] = yield* collect(traceIdOf(stranger.headers), "POST /v1/chat/completions")
    assert.isDefined(refused)
  })

  it.effect("of a read has its path without ids, and those of the system have none", function* () {
    const { url } = yield* Served.ServedGateway
    const { secret } = yield* Served.customer()
    const read = (path: string) => callAt(`${url}${path}?token=${hushed.query}`, { headers: bearer(secret) })
    const { headers } = yield* read(`/v1/videos/vid_${hushed.prompt}`)
    const [span, ...more] = yield* collect(traceIdOf(headers), "GET /v1/videos/:id")
    assert.lengthOf(more, 0)
    assert.include(span?.attributes, {
      "http.route": "/v1/videos/:id",
      "http.response.status_code": 404,
      "gateway.surface": "videos_read"
    })
    for (const path of ["/healthz", "/v1/openapi.json", "/nowhere"]) {
      assert.isNull((yield* read(path)).headers.get("traceresponse"), path)
    }
  })

  it.effect("of a request that all providers fail is an error", function* () {
    const { status, traceId } = yield* post("chat/completions", chatBody(`${hushed.prompt} [sandbox status=503]`))
    assert.strictEqual(status, 503)
    const spans = yield* collect(traceId, "POST /v1/chat/completions")
    const root = named(spans, "POST /v1/chat/completions")
    assert.strictEqual(root.status.code, failed)
    assert.strictEqual(root.attributes["error.type"], "no_provider_available")
    assert.deepStrictEqual(
      childrenOf(spans, root).map(({ name }) => name),
      ["admission", "chat gpt-5.2", "chat gpt-5.2"]
    )
  })

  it.effect("of a stream that breaks says so, though its status is 200", function* () {
    const body = chatBody(`${hushed.prompt} tell me more [sandbox cut=3]`, { stream: true })
    const { traceId } = yield* post("chat/completions", body)
    const spans = yield* collect(traceId, "POST /v1/chat/completions")
    const root = named(spans, "POST /v1/chat/completions")
    assert.include(root.attributes, { "http.response.status_code": 200, "error.type": "stream_error" })
    assert.strictEqual(named(spans, "chat gpt-5.2").status.code, failed)
  })

  it.effect("holds no secret, no customer's word and no query", function* () {
    const { calls } = yield* Tap
    const { customer, text } = yield* post("chat/completions", chatBody(`${hushed.prompt} sing a long song`))
    const { traceId } = yield* post("images/generations", { model: "gpt-image-2", prompt: hushed.prompt })
    yield* collect(traceId, "POST /v1/images/generations")
    const answer = /"content":"([^"\\]{12})/.exec(text)?.[1]
    assert.isDefined(answer)
    const exported = calls.map(({ bytes }) => bytes.toString("utf8")).join("\n")
    for (const hidden of [hushed.prompt, hushed.header, hushed.query, customer.secret, "ggw_", answer, "?token"]) {
      assert.notInclude(exported, hidden)
    }
    assert.isTrue(calls.every(({ headers, path }) => headers["x-key"] === hushed.header && path === "/v1/traces"))
  })
})
