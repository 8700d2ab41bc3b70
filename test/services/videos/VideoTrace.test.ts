import { IncomingMessage } from "node:http"
import { Socket } from "node:net"
import { Effect, Exit, Option, Tracer } from "effect"
import { RequestTrace } from "../../../src/services/tracing/Tracing.ts"
import { busy, done, failed, rendering } from "../../fakes/VideoProviderFake.ts"
import { assert, describe } from "../../harness/It.ts"
import { assertDelivered, assertFailed, submitsOnly, videoTest } from "./VideoBench.ts"

/** Collects spans in the order of their ends. */
const makeSpans = Effect.map(Effect.tracer, (native) => {
  const ended: Array<Tracer.Span> = []
  const tracer = Tracer.make({
    context: (run) => run(),
    span: (...options) => {
      const span = native.span(...options)
      const end: Tracer.Span["end"] = (endTime, exit) => {
        Object.getPrototypeOf(span).end.call(span, endTime, exit)
        ended.push(span)
      }
      return Object.assign(span, { end })
    }
  })
  const now = () => BigInt(Date.now()) * 1_000_000n
  return { ended, source: { tracer, now, isSampled: () => true } }
})
type Spans = Effect.Effect.Success<typeof makeSpans>

const begin = ({ source }: Spans) => {
  const trace = RequestTrace.begin(
    source,
    Object.assign(new IncomingMessage(new Socket()), { method: "POST" }),
    { path: "/v1/videos", surface: "video" },
    "req_1"
  )
  if (trace === undefined) throw new Error("the request is not sampled")
  return trace
}

const hasFailed = ({ status }: Tracer.Span) => status._tag === "Ended" && Exit.isFailure(status.exit)
const summaries = ({ ended }: Spans) => ended.map((span) => [span.name, hasFailed(span)])

describe.concurrent("the trace of a video", () => {
  videoTest("goes on at the instance that takes it over", function* (bench) {
    const { job, model, process, provider } = bench
    const [first, second] = [yield* makeSpans, yield* makeSpans]
    provider.on("m@a", { poll: [rendering, done] })
    const creator = yield* process({ ...submitsOnly, spans: first.source })
    const trace = begin(first)
    const { video } = yield* creator.videos.create(job({}, trace))
    yield* creator.stop
    const attempt = `generate_content ${model.routes[0]?.model}`
    assert.deepStrictEqual(summaries(first), [
      ["admission", false],
      [attempt, false]
    ])

    yield* process({ spans: second.source })
    yield* assertDelivered(bench)
    assert.deepStrictEqual(summaries(second), [
      ["download", false],
      ["settle", false],
      ["video", false]
    ])
    const root = trace.span
    for (const { parent, traceId } of [...first.ended, ...second.ended]) {
      assert.deepStrictEqual([traceId, Option.getOrUndefined(parent)?.spanId], [root.traceId, root.spanId])
    }
    const [, , life] = second.ended
    assert.deepStrictEqual(
      ["gateway.video_id", "gateway.polls"].map((name) => life?.attributes.get(name)),
      [video.id, 1]
    )
  })

  videoTest("shows a render that failed, its second route, and the end", function* (bench) {
    const { job, process, provider } = bench
    const traced = yield* makeSpans
    provider.on("m@a", { poll: [failed(busy)] })
    provider.on("m@b", { poll: [failed(busy)] })
    const { videos } = yield* process({ spans: traced.source })
    yield* videos.create(job({}, begin(traced)))
    yield* assertFailed(bench, "upstream_error")
    assert.deepStrictEqual(
      traced.ended.map(({ attributes, name }) => [name.split(" ")[0], attributes.get("gateway.route")]),
      [
        ["admission", undefined],
        ["generate_content", "m@a"],
        ["generate_content", "m@b"],
        ["settle", undefined],
        ["video", "m@b"]
      ]
    )
    assert.strictEqual(traced.ended.at(-1)?.attributes.get("error.type"), "upstream_error")
  })

  videoTest("is none where its request was not traced", function* (bench) {
    const traced = yield* makeSpans
    bench.provider.on("m@a", { poll: [done] })
    const { videos } = yield* bench.process({ spans: traced.source })
    yield* videos.create(bench.job())
    yield* assertDelivered(bench)
    assert.lengthOf(traced.ended, 0)
  })
})
