import { creditKindOf, discountText, periodText, receiptNumber, statementNumber } from "../../src/domain/Documents.ts"
import { type Month, month } from "../../src/domain/Month.ts"
import { assert, describe, it } from "../harness/It.ts"

const monthOf = (name: string): Month => month(name) ?? assert.fail(name)

describe("documents", () => {
  it("have numbers from the ends of ids", () => {
    assert.strictEqual(statementNumber("org_5d0f7c1e9b3a4c6d8e2f1a0b9c8d7e6f", "2026-11"), "1A0B9C8D7E6F-2026-11")
    assert.strictEqual(receiptNumber("pay_5d0f7c1e9b3a4c6d8e2f1a0b9c8d7e6f"), "1A0B-9C8D-7E6F")
    assert.strictEqual(receiptNumber("5d0f7c1e-9b3a-4c6d-8e2f-1a0b9c8d7e6f"), "1A0B-9C8D-7E6F")
  })

  it("call credits without a Stripe payment top-ups", () => {
    assert.deepStrictEqual(["stripe:pi_1", "inv-2026-0042", null].map(creditKindOf), ["payment", "top-up", "top-up"])
  })

  it("name their period, and whether it may change", () => {
    const november = monthOf("2026-11")
    const period = (isClosed: boolean, now: string) => periodText(november, isClosed, Date.parse(now))
    assert.strictEqual(period(false, "2026-11-30T23:59:59Z"), "1 November 2026 to now (not closed)")
    assert.strictEqual(period(false, "2026-12-01T00:00:00Z"), "1 to 30 November 2026 (not closed)")
    assert.strictEqual(period(true, "2026-12-01T01:00:00Z"), "1 to 30 November 2026")
    assert.strictEqual(periodText(monthOf("2028-02"), true, Date.parse("2028-03-02")), "1 to 29 February 2028")
  })

  it("say which discount their charges include", () => {
    assert.isUndefined(discountText(0, []))
    assert.strictEqual(discountText(12.5, []), "Charges include a discount of 12.5 %.")
    assert.strictEqual(discountText(-5, []), "Charges include a surcharge of 5 %.")
    const at = Date.parse("2026-11-12T10:00:30Z") / 1000
    assert.strictEqual(
      discountText(0, [
        { at, from_percent: 0, to_percent: 10 },
        { at: at + 86_400, from_percent: 10, to_percent: 0 }
      ]),
      "Charges include no discount until 2026-11-12 10:00 UTC, a discount of 10 % until 2026-11-13 10:00 UTC, then no discount."
    )
  })
})
