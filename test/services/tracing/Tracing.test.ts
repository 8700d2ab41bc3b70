import { IncomingMessage } from "node:http"
import { Socket } from "node:net"
import { Data, Effect, Exit, Option, type Tracer } from "effect"
import { RequestTrace, type SpanSource, withSpan } from "../../../src/services/tracing/Tracing.ts"
import { assert, describe, it } from "../../harness/It.ts"

const traceId = "4bf92f3577b34da6a3ce929d0e0e4736"
const spanId = "00f067aa0ba902b7"
const traceparent = `00-${traceId}-${spanId}-01`

/** Effect's own tracer exports nothing. */
const begin = (
  headers: object,
  isSampled: SpanSource["isSampled"] = () => true,
  tracer: Tracer.Tracer = Effect.runSync(Effect.tracer)
) => {
  const source = { tracer, now: () => 1n, isSampled }
  const request = Object.assign(new IncomingMessage(new Socket()), { method: "POST", headers })
  return RequestTrace.begin(source, request, { path: "/v1/chat/completions", surface: "chat" }, "req_1")
}

class Refused extends Data.TaggedError("Refused")<{ readonly message: string }> {}

describe("the span of an effect", () => {
  const ends: ReadonlyArray<readonly [Effect.Effect<void, Refused>, string | undefined]> = [
    [Effect.void, undefined],
    [new Refused({ message: "hush" }), "Refused"],
    [Effect.dieMessage("hush"), "defect"],
    [Effect.interrupt, "interrupted"]
  ]
  for (const [effect, error] of ends) {
    it(`has of its end only the kind: ${error ?? "no error"}`, () => {
      const spans: Array<Tracer.Span> = []
      const native = Effect.runSync(Effect.tracer)
      const span: Tracer.Tracer["span"] = (...options) => {
        const made = native.span(...options)
        spans.push(made)
        return made
      }
      const root = begin({}, () => true, { ...native, span })
      Effect.runSyncExit(withSpan(root, "settle", effect))
      const settle = spans[1]
      assert.deepStrictEqual([settle?.name, settle?.attributes.get("error.type")], ["settle", error])
      assert.deepInclude(settle?.status, { exit: error === undefined ? Exit.void : Exit.fail(error) })
    })
  }
})

describe("the trace of a request", () => {
  it("continues the client's, with its state", () => {
    const span = begin({ traceparent, tracestate: "vendor=value" })
    assert.deepStrictEqual([span?.span.traceId, span?.state], [traceId, "vendor=value"])
    assert.strictEqual(span && Option.getOrThrow(span.span.parent).spanId, spanId)
    assert.strictEqual(span?.traceparent, `00-${traceId}-${span?.span.spanId}-01`)
  })

  it("continues that of a later version, which may have more fields", () => {
    assert.strictEqual(begin({ traceparent: `01-${traceId}-${spanId}-03-more` })?.span.traceId, traceId)
  })

  it("is sampled if the flags of the client say so", () => {
    const isSampled: SpanSource["isSampled"] = (parent) => parent?.sampled === true
    assert.isDefined(begin({ traceparent }, isSampled))
    assert.isUndefined(begin({ traceparent: `00-${traceId}-${spanId}-02` }, isSampled))
  })

  for (const header of [
    "",
    `ff-${traceId}-${spanId}-01`,
    `00-${traceId}-${spanId}-01-more`,
    `00-${"0".repeat(32)}-${spanId}-01`,
    `00-${traceId}-${"0".repeat(16)}-01`,
    `00-${traceId.toUpperCase()}-${spanId}-01`,
    `00-${traceId}-${spanId}-zz`,
    `00-${traceId}-${spanId}-1`,
    `${traceparent}, ${traceparent}`
  ]) {
    it(`is new after the header ${header}`, () => {
      const span = begin({ traceparent: header, tracestate: "vendor=value" })
      assert.isTrue(span && Option.isNone(span.span.parent))
      assert.isUndefined(span?.state)
    })
  }

  it("drops a state that is too long or no plain text", () => {
    for (const tracestate of ["a=b\u0007", `a=${"b".repeat(511)}`]) {
      assert.isUndefined(begin({ traceparent, tracestate })?.state)
    }
  })
})
