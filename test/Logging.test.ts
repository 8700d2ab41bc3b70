import { Cause, Console, Effect, Fiber, type Layer, LogLevel } from "effect"
import { quiet } from "../src/cli/CliServices.ts"
import { logging } from "../src/Serve.ts"
import { assert, describe, it } from "./harness/It.ts"

/** What goes to the console's error output. */
const printed = (log: Effect.Effect<void>, layer: Layer.Layer<never>) =>
  Effect.gen(function* () {
    const lines: Array<string> = []
    const own = yield* Console.consoleWith(Effect.succeed)
    const error = (...values: ReadonlyArray<unknown>) => void lines.push(values.join(" "))
    const written = log.pipe(Effect.provide(layer), Effect.withConsole({ ...own, unsafe: { ...own.unsafe, error } }))
    // A fiber of its own, so that the next one does not inherit its loggers.
    yield* Effect.flatten(Fiber.await(yield* Effect.fork(written)))
    return lines
  })

const logged = (logFormat: "json" | "pretty", log: Effect.Effect<void>) =>
  printed(log, logging({ logFormat, logLevel: LogLevel.Info, worker: undefined }))

const inTokyo = Effect.acquireRelease(
  Effect.sync(() => {
    const before = process.env["TZ"]
    process.env["TZ"] = "Asia/Tokyo"
    return before
  }),
  (before) =>
    Effect.sync(() => {
      if (before === undefined) delete process.env["TZ"]
      else process.env["TZ"] = before
    })
)

describe("a line of the log", () => {
  it.scoped("has its time in UTC wherever the process runs", function* () {
    yield* inTokyo
    assert.include((yield* logged("pretty", Effect.logInfo("hello")))[0], "[00:00:00.000] INFO")
  })

  it.scoped("has its time in UTC in JSON too", function* () {
    yield* inTokyo
    const [json = ""] = yield* logged("json", Effect.logInfo("hello"))
    assert.strictEqual(JSON.parse(json).timestamp, "1970-01-01T00:00:00.000Z")
  })

  it.effect("leaves out empty annotations and spans in JSON", function* () {
    const [plain = ""] = yield* logged("json", Effect.logInfo("hello"))
    assert.deepStrictEqual(Object.keys(JSON.parse(plain)), ["timestamp", "logLevel", "message"])
    const rich = Effect.logInfo("hello").pipe(Effect.annotateLogs("worker", 2), Effect.withLogSpan("start"))
    const [full = ""] = yield* logged("json", rich)
    assert.deepInclude(JSON.parse(full), { message: "hello", annotations: { worker: 2 }, spans: { start: 0 } })
  })

  const failed = Effect.logError("A request failed", Cause.die(new TypeError("no table"))).pipe(
    Effect.annotateLogs("request_id", "req_1")
  )

  it.effect("has the cause and the annotations in both forms", function* () {
    const [json = ""] = yield* logged("json", failed)
    const { cause, ...line } = JSON.parse(json)
    assert.deepInclude(line, { logLevel: "ERROR", message: "A request failed", annotations: { request_id: "req_1" } })
    assert.match(cause, /^TypeError: no table\n +at /)

    const [first = "", second, ...more] = (yield* logged("pretty", failed)).join("\n").split("\n")
    assert.include(first, "ERROR: A request failed · request_id req_1")
    assert.strictEqual(second, "  TypeError: no table")
    assert.deepStrictEqual(
      more.filter((line) => !line.startsWith("  ")),
      []
    )
  })

  it.effect("shows what else is logged beside its message", function* () {
    const more = Effect.logWarning("hello", { held: 2 }, "there")
    assert.deepInclude(JSON.parse((yield* logged("json", more))[0] ?? "").message, "there")
    const text = (yield* logged("pretty", more)).join("\n")
    assert.isTrue(text.endsWith("WARN: hello { held: 2 } there"), text)
  })

  it.effect("prints a bigint inside an object as a string, and an object that has itself only once", function* () {
    const circular: Record<string, unknown> = { amount: 7n, list: [1n] }
    circular["self"] = circular
    const log = Effect.annotateLogs(Effect.logWarning("hello", { held: 2n }), "hold", circular)
    const [json = ""] = yield* logged("json", log)
    const { annotations, message } = JSON.parse(json)
    assert.deepStrictEqual(message, ["hello", { held: "2" }])
    assert.deepStrictEqual(annotations, { hold: { amount: "7", list: ["1"] } })
    assert.include((yield* logged("pretty", log))[0], "hello { held: 2n } · hold ")
  })

  it.effect("is one line, whatever its message and annotations have in them", function* () {
    const log = Effect.logInfo("one\ntwo\r\u001b[2J\u2028", {
      deep: { deeper: { deepest: ["a".repeat(200), "\n"] } }
    }).pipe(
      Effect.annotateLogs({
        "a\nname": "three\n[00:00:00.000] INFO: forged",
        list: Array.from({ length: 50 }, () => 7)
      })
    )
    const [text = "", ...more] = yield* logged("pretty", log)
    assert.isEmpty(more)
    assert.notMatch(text, /[\p{Cc}\u2028]/u)
    assert.include(text, String.raw`INFO: one\ntwo\r\u001b[2J\u2028 { deep: `)
    assert.include(text, String.raw` · a\nname three\n[00:00:00.000] INFO: forged`)
  })

  it.effect("names no fiber", function* () {
    for (const format of ["json", "pretty"] as const) {
      const [line = ""] = yield* logged(format, failed)
      assert.notMatch(line, /fiber|#\d/i)
    }
  })
})

describe("a line of a command's log", () => {
  it.effect("is a warning like the command's own, with its cause and without times and fibers", function* () {
    assert.deepStrictEqual(yield* printed(Effect.logWarning("The disk is full"), quiet), [
      "gateway: warning: The disk is full"
    ])
    const [text = ""] = yield* printed(Effect.logError("It failed", Cause.die(new TypeError("no table"))), quiet)
    assert.match(text, /^gateway: error: It failed\n {2}TypeError: no table\n +at /)
  })

  it.effect("has the annotations and the objects that are logged", function* () {
    const log = Effect.logWarning("A refund failed", { amount: 2n }).pipe(Effect.annotateLogs("hold", "one\ntwo"))
    assert.deepStrictEqual(yield* printed(log, quiet), [
      String.raw`gateway: warning: A refund failed { amount: 2n } · hold one\ntwo`
    ])
  })

  it.effect("is left out below a warning", function* () {
    assert.isEmpty(yield* printed(Effect.logInfo("Created the database"), quiet))
  })
})
