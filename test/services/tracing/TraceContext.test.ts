import { format, parse } from "../../../src/services/tracing/TraceContext.ts"
import { assert, describe, it } from "../../harness/It.ts"

const traceId = "4bf92f3577b34da6a3ce929d0e0e4736"
const spanId = "00f067aa0ba902b7"

describe("a trace context", () => {
  it("is read from its headers and written back", () => {
    const header = `00-${traceId}-${spanId}-01`
    const context = parse(header, "vendor=value")
    assert.deepStrictEqual(context, { traceId, spanId, isSampled: true, state: "vendor=value" })
    assert.strictEqual(context && format(context), header)
  })

  it("is unsampled without the flag, and takes the flags and fields of later versions", () => {
    assert.strictEqual(parse(`00-${traceId}-${spanId}-02`)?.isSampled, false)
    assert.strictEqual(parse(`01-${traceId}-${spanId}-03-more`)?.isSampled, true)
  })

  for (const header of [
    undefined,
    "",
    `ff-${traceId}-${spanId}-01`,
    `00-${traceId}-${spanId}-01-more`,
    `00-${"0".repeat(32)}-${spanId}-01`,
    `00-${traceId}-${"0".repeat(16)}-01`,
    `00-${traceId.toUpperCase()}-${spanId}-01`,
    `00-${traceId}-${spanId}-01, 00-${traceId}-${spanId}-01`
  ]) {
    it(`is not taken from ${header}`, () => {
      assert.isUndefined(parse(header))
    })
  }

  it("drops a state that is too long or no plain text", () => {
    for (const state of ["a=b\u0007", `a=${"b".repeat(511)}`]) {
      assert.isUndefined(parse(`00-${traceId}-${spanId}-01`, state)?.state)
    }
  })
})
