import { writeFileSync } from "node:fs"
import path from "node:path"
import { Effect } from "effect"
import { instant } from "../../src/domain/Moment.ts"
import { type CsvField, csvInvoices } from "../../src/invoices/CsvInvoices.ts"
import { toNano } from "../../src/invoices/VendorInvoices.ts"
import { assert, describe, it } from "../harness/It.ts"
import { temporaryDirectory } from "../harness/temporary.ts"

const hour = 3_600_000
const day = 24 * hour
const from = Date.UTC(2026, 9, 1)
const period = { from, to: from + 2 * day }

const columns = (...fields: ReadonlyArray<CsvField>) =>
  new Map((["time", "model", "usd", ...fields] as const).map((field) => [field, field]))

const readFile = Effect.fnUntraced(function* (text: string, names = columns()) {
  const file = path.join(yield* temporaryDirectory, "invoices.csv")
  writeFileSync(file, text)
  const result = yield* Effect.either(csvInvoices(file, names, period))
  return result._tag === "Right" ? result.right[0] : result.left.message.replace(file, "invoices.csv")
})

describe("a file of invoices", () => {
  it.scoped("is read with quotes, empty lines and both kinds of line ends", function* () {
    const source = yield* readFile(
      'usd,"time","model" \r\n1,2026-10-01,"a ""b"", c"\n,,\n\r\n2,2026-10-02,"d\ne" \r\n3,2026-10-02,5" disk\r\n4,2026-10-03,z'
    )
    if (source === undefined || typeof source === "string") return assert.fail(source)
    assert.strictEqual(source.unit, "day")
    assert.deepStrictEqual(
      (yield* source.read(period)).map(({ at, model, usd }) => [at, model, usd]),
      [
        [from, 'a "b", c', 1_000_000_000n],
        [from + day, "d\ne", 2_000_000_000n],
        [from + day, '5" disk', 3_000_000_000n]
      ]
    )
    const after = from + 2 * day
    assert.deepStrictEqual(source.spanOutside?.(period), { rows: 1, first: after, last: after })
  })

  it.scoped("without ids is added up by hour and model", function* () {
    const lines = Array.from({ length: 5_000 }, (_, n) => {
      const at = new Date(from + (n % 30) * hour + n * 100).toISOString()
      return `${at},m-${n % 2},0.5,${n % 3 === 0 ? "" : 10},7`
    })
    const names = columns("prompt_tokens", "completion_tokens")
    const text = `time,model,usd,prompt_tokens,completion_tokens\n${lines.join("\n")}`
    const source = yield* readFile(text, names)
    if (source === undefined || typeof source === "string") return assert.fail(source)
    assert.strictEqual(source.unit, "hour")
    const entries = yield* source.read(period)
    assert.lengthOf(entries, 30)
    const sum = (of: (entry: (typeof entries)[number]) => bigint | number | undefined) =>
      entries.reduce((total, entry) => total + BigInt(of(entry) ?? 0), 0n)
    assert.strictEqual(
      sum(({ usd }) => usd),
      2_500_000_000_000n
    )
    assert.strictEqual(
      sum(({ promptTokens }) => promptTokens),
      33_330n
    )
    assert.strictEqual(
      sum(({ completionTokens }) => completionTokens),
      35_000n
    )
    assert.lengthOf(yield* source.read({ from, to: from + 3 * hour }), 3)
  })

  it.scoped("with ids has an entry for each line, twice if it is listed twice", function* () {
    const lines = ["2026-10-02T05:00:00Z,m,1,b", "2026-10-01T05:00:00Z,m,1,a", "2026-10-01T06:00:00Z,m,1,a"]
    const source = yield* readFile(`time,model,usd,request_id\n${lines.join("\n")}\n`, columns("request_id"))
    if (source === undefined || typeof source === "string") return assert.fail(source)
    assert.strictEqual(source.unit, "request")
    const keys = (yield* source.read(period)).map(({ key }) => key)
    assert.deepStrictEqual(keys, ["a", "a", "b"])
  })

  it.scoped("is refused with the line and the reason", function* () {
    for (const [text, message] of [
      ["", "invoices.csv:1: there is no header line"],
      ["time,model\n", "invoices.csv:1: there is no column usd"],
      ["time,model,usd\n\n2026-10-01,m,x\n", "invoices.csv:3: usd is no plausible amount"],
      ['time,model,usd\n2026-10-01,"m,1\n', "invoices.csv:2: a quote is never closed"]
    ] as const) {
      assert.strictEqual(yield* readFile(text), message)
    }
  })
})

describe("an amount of a vendor", () => {
  it("is exact, and rounded to the nano-dollar where it is finer", () => {
    assert.deepStrictEqual(
      ["0.06", 1e-7, "199.99999", "0.0000000005", "0.0000000004", "-2", "1e3"].map((value) => toNano(value)),
      [60_000_000n, 100n, 199_999_990_000n, 1n, 0n, -2_000_000_000n, 1_000_000_000_000n]
    )
    assert.strictEqual(toNano("123.78912", 2), 1_237_891_200n)
    assert.strictEqual(toNano(45_000_000, 9), 45_000_000n)
  })

  it("is refused where it is none, or beyond all reason", () => {
    for (const value of [
      "",
      "1,5",
      "NaN",
      Number.NaN,
      Number.POSITIVE_INFINITY,
      null,
      {},
      "1e300",
      "2000000000",
      "1e999"
    ]) {
      assert.isUndefined(toNano(value))
    }
  })
})

describe("a time of a vendor", () => {
  it("is UTC where it names no zone", () => {
    const at = Date.UTC(2026, 9, 1, 2)
    for (const text of [
      "2026-10-01T02:00:00Z",
      "2026-10-01 02:00:00",
      "2026-10-01 02:00:00 UTC",
      "2026-10-01T04:00:00+02:00",
      "2026-10-01T02:00",
      String(at / 1000)
    ]) {
      assert.strictEqual(instant(text), at)
    }
    for (const text of [
      "",
      "2026-13-01",
      "2026-02-31",
      "2026-02-29T01:00:00Z",
      "yesterday",
      "7d",
      "2026-10-01T25:00:00Z"
    ]) {
      assert.isUndefined(instant(text), text)
    }
    assert.strictEqual(instant("2028-02-29"), Date.UTC(2028, 1, 29))
  })
})
