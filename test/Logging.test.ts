import { Console, Effect, LogLevel } from "effect"
import * as Logging from "../src/Logging.ts"
import { assert, describe, it } from "./harness/It.ts"

const logged = (logFormat: "json" | "pretty", log: Effect.Effect<void>) =>
  Effect.gen(function* () {
    const lines: Array<string> = []
    const own = yield* Console.consoleWith(Effect.succeed)
    const error = (...values: ReadonlyArray<unknown>) => void lines.push(values.join(" "))
    yield* log.pipe(
      Effect.provide(Logging.layer({ logFormat, logLevel: LogLevel.Info, worker: undefined })),
      Effect.withConsole({ ...own, unsafe: { ...own.unsafe, error } })
    )
    return lines
  })

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
    assert.sameMembers(Object.keys(JSON.parse(plain)), ["message", "logLevel", "timestamp", "fiberId"])
    const rich = Effect.logInfo("hello").pipe(Effect.annotateLogs("worker", 2), Effect.withLogSpan("start"))
    const [full = ""] = yield* logged("json", rich)
    assert.deepInclude(JSON.parse(full), { message: "hello", annotations: { worker: 2 }, spans: { start: 0 } })
  })
})
