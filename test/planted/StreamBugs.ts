import type { Bug } from "./Bug.ts"

export const streamBugs: ReadonlyArray<Bug> = [
  {
    name: "an event without members is no JSON",
    file: "src/http/responses/Events.ts",
    find: 'members === "" ? `${head}}` : ',
    replace: "",
    caughtBy: ["test/http/chat/Frames.long.test.ts"]
  },
  {
    name: "the end of a stream's time is the provider's, whoever keeps it waiting",
    file: "src/services/routing/RoutedStream.ts",
    find: "      if (client?.disconnectStalled() === true) return\n",
    replace: "",
    caughtBy: ["test/services/routing/StreamDeadlines.test.ts", "test/services/chat/ChatCompletions.test.ts"]
  },
  {
    name: "a client that does not read has nothing left to take",
    file: "src/http/chat/Sse.ts",
    find: "isStalled ||= waiting > unremarkableMillis",
    replace: "isStalled ||= response.destroyed",
    caughtBy: ["test/http/chat/Sse.test.ts"]
  },
  {
    name: "who reads at the last moment has kept nobody waiting",
    file: "src/http/chat/Sse.ts",
    find: " || waitedMillis + waiting > tolerated",
    replace: "",
    caughtBy: ["test/http/chat/Sse.test.ts", "test/http/errors/LongStreams.slow.test.ts"]
  },
  {
    name: "who waits for a moment of a short stream has kept it waiting",
    file: "src/http/chat/Sse.ts",
    find: "Math.max(unremarkableMillis, (",
    replace: "Math.max(0, (",
    caughtBy: ["test/http/chat/Sse.test.ts"]
  },
  {
    name: "a provider that cuts off who does not read is at fault",
    file: "src/services/routing/RoutedStream.ts",
    find: "if (Option.exists(end, mayBeCutOff) && client",
    replace: "if (Option.isNone(end) && client",
    caughtBy: ["test/http/errors/LongStreams.slow.test.ts", "test/services/routing/StreamDeadlines.test.ts"]
  },
  {
    name: "a host that nobody reads is silent",
    file: "src/providers/client/Exchange.ts",
    find: "if (this.waiting !== undefined) this.controller?.abort(new",
    replace: "this.controller?.abort(new",
    caughtBy: ["test/providers/client/UpstreamBodies.test.ts"]
  },
  {
    name: "a provider that generates is still to send its first delta in time",
    file: "src/services/routing/RoutedStream.ts",
    find: 'if (next.right.some(({ type }) => type === "begin")) attempt.beginOutput()',
    replace: "",
    caughtBy: ["test/services/routing/StreamDeadlines.test.ts"]
  },
  {
    name: "a block of thinking is not seen to begin",
    file: "src/providers/anthropic/Stream.ts",
    find: 'asText(type).startsWith("content_block_")',
    replace: 'type === "content_block_delta"',
    caughtBy: ["test/providers/chat/Begins.test.ts"]
  },
  {
    name: "what one provider took to generate is missing to the next",
    file: "src/services/routing/Failover.ts",
    find: "if (since !== undefined) this.#extend",
    replace: "if (since === Number.NaN) this.#extend",
    caughtBy: ["test/services/routing/StreamDeadlines.test.ts"]
  },
  {
    name: "what a host tells of itself reaches clients of its dialect",
    file: "src/providers/chat/NativeEvents.ts",
    find: "[cleanText(name), cleanTexts(value, cleanText)]",
    replace: "[name, value]",
    caughtBy: ["test/providers/chat/NativeEvents.test.ts"]
  }
]
