import { compareWindows, makeModelNames } from "../../../src/services/reconcile/Verdict.ts"
import { assert, describe, it } from "../../harness/It.ts"
import { planted } from "./Planted.ts"

const hour = 3_600_000
const at = Date.UTC(2026, 9, 1, 5)

const compare = (
  ours: Parameters<typeof compareWindows>[0],
  theirs: Parameters<typeof compareWindows>[1],
  now = at + 9 * hour
) =>
  compareWindows(ours, theirs, {
    source: { finalAfter: hour, states: ["tokens", "usd"] },
    unit: "hour",
    nameOf: makeModelNames(["m", "gpt-4o"]),
    tolerance: 10_000,
    now
  })

describe("windows of two sides", () => {
  for (const { ours, theirs, title, verdicts } of planted) {
    it(`have their verdicts: ${title}`, () => {
      const run = () =>
        compare(
          ours.map((amounts) => ({ at, model: "m", ...amounts })),
          theirs.map(({ key = "m", ...amounts }) => ({ key, at, model: "m", ...amounts }))
        )
      assert.deepStrictEqual(
        run().map(({ verdict }) => verdict),
        verdicts
      )
      assert.deepStrictEqual(run(), run())
    })
  }

  it("are open until their end and the vendor's delay are over", () => {
    const own = [{ at, model: "m", usd: 5n }]
    assert.deepStrictEqual(
      [at + 2 * hour - 1, at + 2 * hour].map((now) => compare(own, [], now).map(({ verdict }) => verdict)),
      [["open"], ["ours_only"]]
    )
  })

  it("are those of a model whatever the date of its snapshot, and come in the order of time", () => {
    const rows = compare(
      [
        { at: at + hour, model: "gpt-4o", promptTokens: 7 },
        { at, model: "m", promptTokens: 1 }
      ],
      [{ key: "x", at: at + hour, model: "gpt-4o-2024-08-06", promptTokens: 7 }]
    )
    assert.deepStrictEqual(
      rows.map(({ model, verdict }) => [model, verdict]),
      [
        ["m", "ours_only"],
        ["gpt-4o", "matched"]
      ]
    )
  })

  it("are compared only in what the source states", () => {
    const [row] = compareWindows(
      [{ at, model: "m", usd: 5_000_000n, promptTokens: 7 }],
      [{ key: "m", at, model: "m", promptTokens: 7 }],
      {
        source: { finalAfter: 0, states: ["tokens"] },
        unit: "hour",
        nameOf: makeModelNames([]),
        tolerance: 0,
        now: at + 9 * hour
      }
    )
    assert.strictEqual(row?.verdict, "matched")
    assert.isUndefined(row?.ours?.usd)
  })
})

describe("a model's name", () => {
  it("is the route's where only the date of the snapshot differs", () => {
    const nameOf = makeModelNames(["gpt-4o", "o9-2026-01-02", "claude-x-20260102"])
    assert.deepStrictEqual(
      ["gpt-4o-2024-08-06", "GPT-4o", "o9", "claude-x", "gpt-4o-mini", "o9-2026-09-09"].map(nameOf),
      ["gpt-4o", "gpt-4o", "o9-2026-01-02", "claude-x-20260102", "gpt-4o-mini", "o9-2026-09-09"]
    )
  })
})
