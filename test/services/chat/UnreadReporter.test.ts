import { Effect, Logger, TestClock } from "effect"
import type { UnknownPart } from "../../../src/domain/Chat.ts"
import { makeUnreadReporter } from "../../../src/services/chat/ChatCharging.ts"
import { LedgerBench } from "../../contracts/LedgerBench.ts"
import * as LedgerFake from "../../fakes/LedgerFake.ts"
import { route } from "../../fakes/ProviderFake.ts"
import { assert, describe, it } from "../../harness/It.ts"
import { openChat } from "./ChatBench.ts"

const all: ReadonlyArray<UnknownPart> = [
  { part: "stop_reason", detail: "of_tomorrow" },
  { part: "usage", detail: "109 total tokens, but 9 prompt tokens and 6 completion tokens" },
  { part: "block", detail: "hologram" }
]

describe("an unreadable part of an answer", () => {
  it.effect("is noted each time, and logged once a minute for each route and part", () => {
    const lines: Array<string> = []
    const logger = Logger.make(({ message }) => void lines.push(String(message)))
    return Effect.gen(function* () {
      yield* LedgerBench
      const report = yield* makeUnreadReporter
      const reportFrom = Effect.fnUntraced(function* (name: string) {
        const { record } = yield* openChat(1n)
        yield* report(record, route(name), { unread: all })
        assert.deepStrictEqual([...record.summary.notes], ["stop_reason_unknown", "usage_unexplained", "block_unknown"])
      })
      const logged = (name: string) => lines.filter((line) => line.startsWith(`Route ${route(name).id} `)).length
      yield* reportFrom("a")
      yield* reportFrom("a")
      yield* reportFrom("b")
      assert.deepStrictEqual([logged("a"), logged("b")], [3, 3])
      for (const { detail } of all) assert.isTrue(lines.some((line) => line.endsWith(`: ${detail}`)))
      yield* TestClock.adjust("61 seconds")
      yield* reportFrom("a")
      assert.deepStrictEqual([logged("a"), logged("b")], [6, 3])
    }).pipe(Effect.provide(LedgerFake.layer), Effect.provide(Logger.replace(Logger.defaultLogger, logger)))
  })
})
