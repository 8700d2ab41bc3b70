import { parseJson, parsePruned } from "../../../src/providers/client/JsonFields.ts"
import { assert, describe, it } from "../../harness/It.ts"

const nested = (levels: number, open = '{"a":', close = "}") => `${open.repeat(levels)}1${close.repeat(levels)}`
const depth = (value: unknown): number =>
  typeof value === "object" && value !== null ? 1 + Math.max(0, ...Object.values(value).map(depth)) : 0

describe("the JSON of a provider", () => {
  for (const [open, close] of [
    ['{"a":', "}"],
    ["[", "]"]
  ] as const) {
    it(`is read to 200 levels of ${open}`, () => {
      assert.strictEqual(depth(parseJson(nested(200, open, close))), 200)
      assert.isUndefined(parseJson(nested(201, open, close)))
      assert.isUndefined(parseJson(nested(20_000, open, close)))
    })

    it(`is cut below 200 levels of ${open} where its first ones are all that is read`, () => {
      assert.strictEqual(depth(parsePruned(nested(200, open, close))), 200)
      assert.strictEqual(depth(parsePruned(nested(20_000, open, close))), 200)
    })
  }

  it("keeps what stands beside a deep value", () => {
    const text = `{"status":"failed","error":${nested(20_000)},"list":[{"n":1},null]}`
    assert.isUndefined(parseJson(text))
    assert.deepInclude(parsePruned(text), { status: "failed", list: [{ n: 1 }, null] })
  })

  it("is undefined where the text is no JSON", () => {
    for (const text of ["", "{", "undefined"]) assert.isUndefined(parseJson(text) ?? parsePruned(text))
  })
})
