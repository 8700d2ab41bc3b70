import type { Bug } from "./Bug.ts"

const completions = "src/services/chat/ChatCompletions.ts"
const output = "src/services/chat/StreamOutput.ts"
const departures = "test/services/chat/StreamDepartures.test.ts"
const onWires = "test/http/chat/WireDepartures.test.ts"

/** Bugs in what is counted and told, mostly of streams whose client leaves. */
export const departureBugs: ReadonlyArray<Bug> = [
  {
    name: "a client that left pays nothing for what it read",
    file: completions,
    find: "        if (!output.started) return\n",
    replace: "        return\n",
    caughtBy: ["test/crashes/Departures.test.ts", departures]
  },
  {
    name: "a client that left pays nothing of what its provider has counted",
    file: output,
    find: "return { ...this.received(), produced",
    replace: "return { ...this.received(), reported: undefined, produced",
    caughtBy: [departures, onWires]
  },
  {
    name: "a client that left pays for what it received, though more was counted",
    file: "src/services/chat/ChatUsage.ts",
    find: "Math.max(usage.completion, counted)",
    replace: "counted || usage.completion",
    caughtBy: [departures, onWires]
  },
  {
    name: "a client that left pays for what came afterwards",
    file: output,
    find: "if (this.started) this.#shown = this.#pieces.length",
    replace: "",
    caughtBy: [departures]
  },
  {
    name: "a stream is not read on for its counts",
    file: output,
    find: "return this.started && !this.#isCounted",
    replace: "return false",
    caughtBy: [departures, onWires]
  },
  {
    name: "a stream is read on without its client for an hour",
    file: completions,
    find: "const readOnMillis = 2_000",
    replace: "const readOnMillis = 3_600_000",
    caughtBy: [departures]
  },
  {
    name: "a stream whose host counts along is read on without its client",
    file: output,
    find: "return this.started && !this.#isCounted",
    replace: "return this.started",
    caughtBy: [departures]
  },
  {
    name: "a stream that breaks after its client left is free",
    file: completions,
    find: "(isBroken ? output.started : Cause.isInterruptedOnly(cause))",
    replace: "Cause.isInterruptedOnly(cause)",
    caughtBy: [departures]
  },
  {
    name: "what an answer costs the operator leaves its hidden output out",
    file: "src/services/chat/ChatCharging.ts",
    find: "record.cost = Pricing.chatCharge(routeCost, usage)",
    replace:
      "record.cost = Pricing.chatCharge(routeCost, { ...usage, completion: usage.completion - usage.reasoning })",
    caughtBy: [departures, onWires]
  },
  {
    name: "counts that come with the end of a message are kept until its stream is over",
    file: "src/providers/anthropic/Stream.ts",
    find: "          count(event.usage)\n          return tellUsage(out)\n",
    replace: "          return count(event.usage)\n",
    caughtBy: [onWires, "test/providers/anthropic/Stream.test.ts"]
  },
  {
    name: "a count is believed, however large",
    file: "src/domain/Pricing.ts",
    find: "if (prompt <= limit && completion <= limit && webSearches <= maxSearches) return",
    replace: "if (limit > 0) return",
    caughtBy: ["test/domain/Pricing.long.test.ts", "test/http/chat/Charges.test.ts"]
  },
  {
    name: "a stream shows its host's counts instead of those that are billed",
    file: "src/http/messages/Stream.ts",
    find: "usage: billedUsage(messageDelta.usage, usage)",
    replace: "usage: { ...usageJson(usage), ...merge({}, messageDelta.usage) }",
    caughtBy: ["test/http/messages/Native.test.ts"]
  },
  {
    name: "a stream whose charge was taken back is logged as refused",
    file: "src/services/ledger/RefundSql.ts",
    find: "CASE WHEN stream OR status = 499 THEN status ELSE 500 END",
    replace: "500",
    caughtBy: ["test/services/ledger/LedgerRows.test.ts"]
  }
]
