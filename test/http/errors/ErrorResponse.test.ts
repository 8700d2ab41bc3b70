import { SqlError } from "@effect/sql"
import { Cause, Effect, Logger, LogLevel } from "effect"
import * as Pg from "pg"
import { errorResponse } from "../../../src/http/admission/RequestOutcome.ts"
import { DatabaseLost, HeartbeatLost, NoAnswer, NotSent } from "../../../src/services/sql/Outage.ts"
import { assert, describe, it } from "../../harness/It.ts"

/** A failure as the driver gives it, with the server's code for it. */
const refused = (code: string) =>
  new SqlError.SqlError({
    cause: Object.assign(new Pg.DatabaseError("refused", 1, "error"), { code, severity: "ERROR" })
  })
const broken = (cause: Error) => new SqlError.SqlError({ cause })

/** The defect's answer, and the levels at which it was logged. */
const told = Effect.fnUntraced(function* (cause: Cause.Cause<unknown>) {
  const levels: Array<string> = []
  const logger = Logger.make(({ logLevel }) => void levels.push(logLevel.label))
  const error = yield* errorResponse(cause, "req").pipe(
    Effect.provide(Logger.replace(Logger.defaultLogger, logger)),
    Logger.withMinimumLogLevel(LogLevel.All)
  )
  return { status: error.status, retryAfter: error.headers?.["retry-after"], levels }
})

const withRetry = (level: string) => ({ status: 500, retryAfter: "5", levels: [level] })

describe("a request that fails for an internal reason", () => {
  for (const [what, defect] of [
    ["a connection that broke", broken(new Error("Connection terminated unexpectedly"))],
    ["a statement that ran out of time", refused("57014")],
    ["a lock that was not to be had", refused("55P03")],
    ["a server that is starting", refused("57P03")],
    ["a server that takes no writes", refused("25006")],
    ["too many connections", refused("53300")],
    ["an answer that did not come", new NoAnswer()],
    ["a turn that did not come", new NotSent()]
  ] as const) {
    it.effect(`gets a Retry-After and a warning in the log after ${what}`, () =>
      Effect.map(told(Cause.die(defect)), (answer) => assert.deepStrictEqual(answer, withRetry("WARN")))
    )
  }

  for (const [what, defect] of [
    ["a database that is lost", broken(new DatabaseLost("lost"))],
    ["a heartbeat that is lost", new HeartbeatLost()]
  ] as const) {
    it.effect(`gets a Retry-After without another warning after ${what}`, () =>
      Effect.map(told(Cause.die(defect)), (answer) => assert.deepStrictEqual(answer, withRetry("DEBUG")))
    )
  }

  for (const [what, cause] of [
    ["a defect", Cause.die(new TypeError("x is undefined"))],
    ["a statement that is wrong", Cause.die(refused("42601"))],
    ["a value that the database cannot take", Cause.die(refused("22021"))],
    ["a defect beside an outage", Cause.parallel(Cause.die(new NoAnswer()), Cause.die(new TypeError("x")))]
  ] as const) {
    it.effect(`gets no Retry-After after ${what}`, () =>
      Effect.map(told(cause), (answer) =>
        assert.deepStrictEqual(answer, { status: 500, retryAfter: undefined, levels: ["ERROR"] })
      )
    )
  }
})
