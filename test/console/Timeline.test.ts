import { axisEnd, layOut } from "../../src/console/views/requests/Timeline.ts"
import { assert, describe, it } from "../harness/It.ts"

const attempt = (outcome: string, ms: number) => ({ route: `m@${outcome}`, provider: outcome, outcome, ms })

const failover = [
  { event: "received", at_ms: 0, detail: "chat m" },
  { event: "admitted", at_ms: 2, detail: "0.1 USD reserved" },
  { event: "attempt 1", took_ms: 10, detail: "" },
  { event: "attempt 2", took_ms: 30, detail: "" },
  { event: "first byte", at_ms: 45 },
  { event: "settled", at_ms: 90, detail: "0.05 USD charged" },
  { event: "answered", at_ms: 88, detail: "200" }
]

const spans = (rows: ReturnType<typeof layOut>) => rows.map(({ from, name, to, tone }) => [name, from, to, tone])

describe("the bars of a request", () => {
  it("show admission, hold, consecutive attempts and the stream", () => {
    assert.deepStrictEqual(spans(layOut(failover, [attempt("retry", 10), attempt("ok", 30)])), [
      ["Received", 0, 0, "accent"],
      ["Admission", 0, 2, "soft"],
      ["Hold", 2, 90, "soft"],
      ["Attempt 1", 2, 12, "bad"],
      ["Attempt 2", 12, 42, "good"],
      ["First byte", 45, 45, "accent"],
      ["Settled", 90, 90, "good"],
      ["Response", 45, 88, "accent"]
    ])
  })

  it("of an open hold reach to the last event", () => {
    const open = layOut(failover.slice(0, 3), [attempt("timeout", 10)])
    assert.deepStrictEqual(spans(open)[2], ["Hold", 2, 2, "soft"])
  })

  it("of a video show its render", () => {
    const rows = layOut(
      [
        { event: "answered", at_ms: 40, detail: "202" },
        { event: "failed", at_ms: 7000, detail: "upstream_error" },
        { event: "released", at_ms: 7000, detail: "nothing charged" }
      ],
      []
    )
    assert.deepStrictEqual(spans(rows)[1], ["Failed", 40, 7000, "bad"])
  })

  it("have an axis that a late refund does not stretch", () => {
    const rows = layOut([...failover, { event: "refunded", at_ms: 86_400_000, detail: "0.05 USD" }], [])
    assert.strictEqual(axisEnd(rows), 90)
    assert.deepStrictEqual(rows.at(-1)?.to, 86_400_000)
    assert.strictEqual(axisEnd([]), 1)
  })

  it("include unknown events", () => {
    const [row] = layOut([{ event: "something new", detail: "of another version" }], [])
    assert.deepInclude(row, { name: "Something new", from: 0, to: 0, detail: "of another version" })
  })
})
