import { writeFileSync } from "node:fs"
import path from "node:path"
import { Effect } from "effect"
import { assert, withLayer } from "../harness/It.ts"
import { Cli } from "./Cli.ts"
import { dateOf, day, from, hour, jsonOf, logAt, reconcile, rowsOf, suite } from "./Reconciling.ts"

const columns = "time=time,model=model,usd=usd"
const iso = (at: number) => new Date(at).toISOString().replace(".000Z", "Z")

const args = Effect.fnUntraced(function* (lines: ReadonlyArray<string>, more = "") {
  const { directory } = yield* Cli
  writeFileSync(path.join(directory, "acme.csv"), `time,model,usd,id\n${lines.join("\n")}\n`)
  return ["--file", "acme.csv", "--columns", `${columns}${more}`]
})

withLayer(suite)("gateway reconcile --file", (it) => {
  it.scoped("reports the number and the times of rows outside the period", function* () {
    yield* logAt("acme", from)
    const file = yield* args([
      `${dateOf(from - 30 * day)},nine,5`,
      `${dateOf(from)},nine,2`,
      `${dateOf(from + 2 * day)},nine,7`,
      `${dateOf(from + 3 * day)},nine,7`
    ])
    const { code, data, outside, theirs_usd } = yield* jsonOf("acme", file)
    assert.deepStrictEqual(rowsOf(data), [["nine", "matched"]])
    assert.deepStrictEqual(outside, { rows: 3, first: (from - 30 * day) / 1000, last: (from + 3 * day) / 1000 })
    assert.deepStrictEqual([code, theirs_usd], [0, 2])
    const named = `Not compared: 3 rows of the file are outside this period, from ${iso(from - 30 * day)} to ${iso(from + 3 * day)}.`
    assert.include((yield* reconcile("acme", file)).stdout, `Nothing differs.\n${named}\n`)
    assert.strictEqual((yield* reconcile("acme", [...file, "--csv"])).stderr, `gateway: ${named}\n`)
  })

  it.scoped("reports a call of before the period that is billed in it, and no other row of that day", function* () {
    const attempt = (id: string) => ({
      attempts: [{ route: "talk@renders", provider: "renders", outcome: "ok", ms: 1, provider_request_id: id }]
    })
    yield* logAt("renders", from - 60_000, attempt("early"))
    yield* logAt("renders", from + 2 * day - 60_000, attempt("late"))
    const file = yield* args(
      [
        `${iso(from - 5 * day)},nine,1,ancient`,
        `${iso(from + 60_000)},nine,2,early`,
        `${iso(from + 2 * day + 60_000)},nine,2,late`,
        `${iso(from + 2 * day + hour)},nine,1,after`
      ],
      ",request_id=id"
    )
    const { data, outside } = yield* jsonOf("renders", file)
    assert.deepStrictEqual(
      data.map(({ request_id, verdict }) => [request_id, verdict]),
      [["late", "matched"]]
    )
    assert.deepStrictEqual(outside, {
      rows: 3,
      first: (from - 5 * day) / 1000,
      last: (from + 2 * day + hour) / 1000
    })
  })

  it.scoped("fails if no row is in the period, and never says that nothing differs", function* () {
    const file = yield* args([`${dateOf(from - 30 * day)},nine,5`])
    const { code, stderr, stdout } = yield* reconcile("grok", file)
    assert.strictEqual(code, 2)
    assert.strictEqual(stderr, "gateway: acme.csv has no row in this period.\n")
    assert.notInclude(stdout, "Nothing differs.")
    assert.include(stdout, `Not compared: 1 row of the file is outside this period, of ${iso(from - 30 * day)}.`)
  })

  it.scoped("says that nothing was compared if neither side has calls", function* () {
    const { code, stdout } = yield* reconcile("grok", yield* args([]))
    assert.strictEqual(code, 0)
    assert.include(stdout, "Nothing was compared: neither the log nor the invoices have calls in this period.")
    assert.notInclude(stdout, "Nothing differs.")
  })

  it.scoped("reads a file as Windows saves it, and refuses one that it cannot read", function* () {
    yield* logAt("claude", from)
    const { directory } = yield* Cli
    const text = `time,model,usd\r\n${dateOf(from)},claude-9,2\r\n`
    const file = ["--file", "windows.csv", "--columns", columns]
    for (const bytes of [Buffer.from(`\ufeff${text}`), Buffer.from(`\ufeff${text}`, "utf16le")]) {
      writeFileSync(path.join(directory, "windows.csv"), bytes)
      assert.deepStrictEqual(rowsOf((yield* jsonOf("claude", file)).data), [["claude-9", "matched"]])
    }
    writeFileSync(path.join(directory, "windows.csv"), Buffer.from(text, "utf16le"))
    const { code, stderr } = yield* reconcile("claude", file)
    assert.deepStrictEqual(
      [code, stderr],
      [2, "gateway: windows.csv:1: it contains NUL characters: save it as UTF-8\n"]
    )
  })

  it.scoped("names a file that does not exist", function* () {
    const { code, stderr } = yield* reconcile("acme", ["--file", "none.csv", "--columns", columns])
    assert.deepStrictEqual([code, stderr], [2, "gateway: none.csv: there is no such file\n"])
  })

  it.scoped("refuses a day that does not exist", function* () {
    const { code, stderr } = yield* reconcile("acme", yield* args(["2026-02-31,nine,1"]))
    assert.deepStrictEqual([code, stderr], [2, "gateway: acme.csv:2: time is no date or time\n"])
  })

  it.scoped("accepts today, yesterday and this-month", function* () {
    const { run } = yield* Cli
    const today = Math.floor(Date.now() / day) * day
    yield* logAt("acme", today - day)
    yield* logAt("acme", today)
    const file = yield* args([`${dateOf(today - day)},nine,2`, `${dateOf(today)},nine,2`])
    const since = (...period: ReadonlyArray<string>) =>
      Effect.map(
        run(["reconcile", "acme", "--since", ...period, ...file], { CATALOG_FILE: "books.yaml" }),
        (finished) => [
          finished.code,
          finished.stdout.split("\n").find((line) => line.startsWith("acme, ")),
          finished.stderr
        ]
      )
    const summary = (start: number, end: number, matched: number, open: number) =>
      `acme, ${new Date(start).toISOString()} to ${new Date(end).toISOString()}: ${matched} matched, 0 theirs_only, 0 ours_only, 0 quantity, 0 price, ${open} open.`
    assert.deepStrictEqual(yield* since("yesterday"), [0, summary(today - day, today, 1, 0), ""])
    assert.deepStrictEqual(yield* since("yesterday", "--until", "today"), [0, summary(today - day, today, 1, 0), ""])
    assert.deepStrictEqual(yield* since("today"), [0, summary(today, today + day, 0, 1), ""])
    const [code, line] = yield* since("last-month", "--until", "this-month")
    assert.match(String(line), /^acme, \d{4}-\d\d-01T00:00:00\.000Z to \d{4}-\d\d-01T00:00:00\.000Z: /)
    assert.include([0, 2], code)
  })
})
