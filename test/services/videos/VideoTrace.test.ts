import { IncomingMessage } from "node:http"
import { Socket } from "node:net"
import { RequestTrace } from "../../../src/services/tracing/RequestTrace.ts"
import type { Span } from "../../../src/services/tracing/Tracing.ts"
import { busy, done, failed, rendering } from "../../fakes/VideoProviderFake.ts"
import { assert, describe } from "../../harness/It.ts"
import { assertDelivered, assertFailed, submitsOnly, videoTest } from "./VideoBench.ts"

const makeTracer = () => {
  const spans: Array<Span> = []
  const now = () => BigInt(Date.now()) * 1_000_000n
  return { spans, tracer: { now, isSampled: () => true, export: (span: Span) => void spans.push(span) } }
}

const begin = ({ tracer }: ReturnType<typeof makeTracer>) => {
  const trace = RequestTrace.begin(
    tracer,
    Object.assign(new IncomingMessage(new Socket()), { method: "POST" }),
    { path: "/v1/videos", surface: "video" },
    "req_1"
  )
  if (trace === undefined) throw new Error("the request is not sampled")
  return trace
}

const summaries = ({ spans }: ReturnType<typeof makeTracer>) => spans.map(({ isError, name }) => [name, isError])

describe.concurrent("the trace of a video", () => {
  videoTest("goes on at the instance that takes it over", function* (bench) {
    const { job, model, process, provider } = bench
    const [first, second] = [makeTracer(), makeTracer()]
    provider.on("m@a", { poll: [rendering, done] })
    const creator = yield* process({ ...submitsOnly, tracer: first.tracer })
    const trace = begin(first)
    const { video } = yield* creator.videos.create(job({}, trace))
    yield* creator.stop
    const attempt = `generate_content ${model.routes[0]?.model}`
    assert.deepStrictEqual(summaries(first), [
      ["admission", false],
      [attempt, false]
    ])

    yield* process({ tracer: second.tracer })
    yield* assertDelivered(bench)
    assert.deepStrictEqual(summaries(second), [
      ["download", false],
      ["settle", false],
      ["video", false]
    ])
    for (const { context, parent } of [...first.spans, ...second.spans]) {
      assert.deepStrictEqual([context.traceId, parent?.spanId], [trace.span.context.traceId, trace.span.context.spanId])
    }
    const [, , life] = second.spans
    assert.deepStrictEqual([life?.attributes["gateway.video_id"], life?.attributes["gateway.polls"]], [video.id, 1])
  })

  videoTest("shows a render that failed, its second route, and the end", function* (bench) {
    const { job, process, provider } = bench
    const traced = makeTracer()
    provider.on("m@a", { poll: [failed(busy)] })
    provider.on("m@b", { poll: [failed(busy)] })
    const { videos } = yield* process({ tracer: traced.tracer })
    yield* videos.create(job({}, begin(traced)))
    yield* assertFailed(bench, "upstream_error")
    assert.deepStrictEqual(
      traced.spans.map(({ attributes, name }) => [name.split(" ")[0], attributes["gateway.route"]]),
      [
        ["admission", undefined],
        ["generate_content", "m@a"],
        ["generate_content", "m@b"],
        ["settle", undefined],
        ["video", "m@b"]
      ]
    )
    assert.strictEqual(traced.spans.at(-1)?.attributes["error.type"], "upstream_error")
  })

  videoTest("is none where its request was not traced", function* (bench) {
    const traced = makeTracer()
    bench.provider.on("m@a", { poll: [done] })
    const { videos } = yield* bench.process({ tracer: traced.tracer })
    yield* videos.create(bench.job())
    yield* assertDelivered(bench)
    assert.lengthOf(traced.spans, 0)
  })
})
