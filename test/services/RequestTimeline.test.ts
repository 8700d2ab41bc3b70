import { NanoUsd } from "../../src/domain/Money.ts"
import { timelineOf } from "../../src/services/admin/RequestExplanation.ts"
import { assert, describe, it } from "../harness/It.ts"
import { requestRow as row } from "./RequestRow.ts"

/** A request that was answered after 200 ms, with a hold by the database's clock. */
const timesOf = (createdMs: number, closedMs: number) => {
  const hold = {
    id: "h",
    amount: NanoUsd(5n),
    state: "settled" as const,
    charged: NanoUsd(3n),
    createdAt: new Date(createdMs),
    closedAt: new Date(closedMs)
  }
  const events = timelineOf({
    row,
    money: { hold, entries: [] },
    model: undefined,
    video: undefined
  })
  return events.map(({ at_ms, event }) => [event, at_ms])
}

describe("what happened to a request", () => {
  it("is listed in order where the database's clock is a little behind or ahead", () => {
    for (const [created, closed, admitted, settled] of [
      [10, 150, 10, 150],
      [-300, -200, 0, 100],
      [400, 600, 100, 200]
    ] as const) {
      assert.deepStrictEqual(timesOf(created, closed), [
        ["received", 0],
        ["admitted", admitted],
        ["first byte", 100],
        ["settled", settled],
        ["answered", 200]
      ])
    }
  })

  it("ends with a settlement that came long after the answer", () => {
    assert.deepStrictEqual(timesOf(10, 60_000).slice(-2), [
      ["answered", 200],
      ["settled", 60_000]
    ])
  })
})
