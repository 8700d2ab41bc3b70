import { randomBytes } from "node:crypto"
import { Effect, Tracer } from "effect"
import { SpanParent, Tracing } from "../../src/services/tracing/Tracing.ts"
import { layer, makeSampler } from "../../src/tracing/Otlp.ts"
import { assert, describe, it } from "../harness/It.ts"
import { json, silent } from "../harness/upstream/FakeUpstream.ts"
import * as Collector from "./Collector.ts"

const id = () => randomBytes(16).toString("hex")
const parent = (sampled: boolean) => Tracer.externalSpan({ traceId: id(), spanId: "00f067aa0ba902b7", sampled })

const cases: ReadonlyArray<
  readonly [name: string, ratio: number, alone: boolean, sampled: boolean, unsampled: boolean]
> = [
  ["always_on", 0, true, true, true],
  ["always_off", 1, false, false, false],
  ["traceidratio", 1, true, true, true],
  ["traceidratio", 0, false, false, false],
  ["parentbased_always_on", 0, true, true, false],
  ["parentbased_always_off", 1, false, true, false],
  ["parentbased_traceidratio", 1, true, true, false],
  ["parentbased_traceidratio", 0, false, true, false]
]

describe("a sampler", () => {
  for (const [name, ratio, alone, sampled, unsampled] of cases) {
    it(`${name} of ${ratio} decides with and without a parent`, () => {
      const isSampled = makeSampler(name, ratio)
      assert.deepStrictEqual([undefined, parent(true), parent(false)].map(isSampled), [alone, sampled, unsampled])
    })
  }

  it("takes about its share of new traces", () => {
    const isSampled = makeSampler("traceidratio", 0.1)
    assert.closeTo(Array.from({ length: 10_000 }, () => isSampled(undefined)).filter(Boolean).length, 1_000, 200)
  })

  it("takes about its share of traces from outside, and the same ones with every greater share", () => {
    const parents = Array.from({ length: 10_000 }, () => parent(false))
    const taken = (ratio: number) => new Set(parents.filter(makeSampler("traceidratio", ratio)))
    const [few, many] = [taken(0.1), taken(0.5)]
    assert.closeTo(few.size, 1_000, 200)
    assert.closeTo(many.size, 5_000, 400)
    assert.isTrue([...few].every((one) => many.has(one)))
  })
})

const settings = {
  otlpHeaders: undefined,
  otlpProtocol: "http/json",
  otelServiceName: undefined,
  otelResourceAttributes: {},
  tracesSampler: "always_on",
  tracesSamplerArg: 1
} as const

const pushing = Effect.fnUntraced(function* (spans: number) {
  const { source } = yield* Tracing
  assert.isDefined(source)
  for (let n = 0; n < spans; n += 1) new SpanParent(source, undefined).start("span").end()
  yield* Effect.sleep("2 seconds")
})

describe("the exporter", () => {
  it.scopedLive("calls a collector that never answers a few times at once, and drops the rest", function* () {
    const collector = yield* Collector.make()
    collector.answer(silent)
    yield* pushing(20_000).pipe(Effect.provide(layer(collector.url, settings)))
    assert.lengthOf(collector.calls, 16)
  })

  it.scopedLive("does not keep its spans for as long as a collector that is busy says", function* () {
    const collector = yield* Collector.make()
    collector.answer(json(429, {}, { "retry-after": "3600" }))
    yield* Effect.zipRight(pushing(512), pushing(20_000)).pipe(Effect.provide(layer(collector.url, settings)))
    assert.lengthOf(collector.calls, 1)
  })
})
