import { RequestMatcher } from "../../../src/services/reconcile/InvoiceReconciliation.ts"
import { assert, describe, it } from "../../harness/It.ts"

const hour = 3_600_000
const day = 24 * hour
const from = Date.UTC(2026, 9, 1)
const range = { from, to: from + 3 * day }

const matcher = (now = from + 30 * day) =>
  new RequestMatcher({ range, nameOf: (name) => name, tolerance: 10_000, finalAfter: hour, now })

const own = (requestId: string | undefined, at: number, usd = 1_000_000n) => ({
  at,
  model: "m",
  requestId,
  amounts: { usd }
})
const listed = (requestId: string, at: number, usd = 1_000_000n) => ({ key: requestId, requestId, at, model: "m", usd })

const verdictsOf = (rows: ReturnType<RequestMatcher["end"]>) =>
  rows.map(({ requestId, verdict }) => [requestId, verdict])

describe("calls by their ids", () => {
  it("match whatever the day that each side enters them on", () => {
    const calls = matcher()
    const late = from + day - 60_000
    assert.deepStrictEqual(
      calls.advance([own("a", late), own("b", from)], [listed("b", from, 2_000_000n)], from + day),
      [
        {
          at: from,
          model: "m",
          requestId: "b",
          ours: { usd: 1_000_000n },
          theirs: listed("b", from, 2_000_000n),
          verdict: "price"
        }
      ]
    )
    assert.deepStrictEqual(verdictsOf(calls.advance([], [listed("a", from + day + 60_000)], from + 2 * day)), [
      ["a", "matched"]
    ])
    assert.deepStrictEqual(calls.end(), [])
  })

  it("differ where one has no cost here and is billed all the same", () => {
    const failed = { at: from, model: "m", requestId: "failed", amounts: {} }
    assert.deepStrictEqual(verdictsOf(matcher().advance([failed], [listed("failed", from)], from + day)), [
      ["failed", "price"]
    ])
  })

  it("are of one side alone where the other has none, and twice where they are listed twice", () => {
    const calls = matcher()
    const rows = [
      ...calls.advance(
        [own("lost", from), own(undefined, from), own("failed", from, 0n)],
        [listed("past", from), listed("past", from + 1)],
        from + day
      ),
      ...calls.end()
    ]
    assert.sameDeepMembers(verdictsOf(rows), [
      ["lost", "ours_only"],
      [null, "ours_only"],
      ["past", "theirs_only"],
      ["past", "theirs_only"]
    ])
  })

  it("that must not be listed yet are open", () => {
    const calls = matcher(from + hour)
    calls.advance([own("a", from + 1), own("b", from)], [], from + day)
    assert.deepStrictEqual(verdictsOf(calls.end()), [
      ["b", "ours_only"],
      ["a", "open"]
    ])
  })

  it("outside of the range only find their counterparts", () => {
    const calls = matcher()
    calls.advance([own("before", from - 1)], [listed("earlier", from - 2)], from)
    calls.advance([], [listed("before", from + 1)], from + day)
    assert.deepStrictEqual(calls.end(), [])
  })
})
