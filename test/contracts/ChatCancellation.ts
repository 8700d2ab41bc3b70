import { assert } from "@effect/vitest"
import { Effect, Exit, Fiber, Scope } from "effect"
import type { Usage } from "../../src/domain/Chat.ts"
import type { ChatAdapter } from "../../src/services/routing/Provider.ts"
import { type Answer, type Host, hear, joined, request } from "./ChatHarness.ts"

export type Check = (
  name: string,
  body: (adapter: ChatAdapter, host: Host) => Effect.Effect<unknown, unknown, Scope.Scope>
) => void

/** What can only be seen on a host that waits. */
export const chatCancellationContract = (usage: Usage, check: Check): void => {
  const answer: Answer = { content: "first and last", finish: "stop", usage }
  const held = (host: Host) => host.holds?.(answer) ?? Effect.dieMessage("the host cannot wait")

  check("a delta is passed on before the next one exists", (adapter, host) =>
    Effect.gen(function* () {
      const { release } = yield* held(host)
      const pull = yield* adapter.stream(host.route, request({ stream: true }))
      const heard = [...(yield* pull)]
      while (!heard.some((event) => event.type === "content" && event.text !== "")) heard.push(...(yield* pull))
      yield* release
      while (!heard.some((event) => event.type === "finish")) heard.push(...(yield* pull))
      assert.strictEqual(joined(heard).content, answer.content)
    })
  )

  check("closing a stream's scope cancels the call", (adapter, host) =>
    Effect.gen(function* () {
      const { gone } = yield* held(host)
      const scope = yield* Scope.make()
      const pull = yield* adapter.stream(host.route, request({ stream: true })).pipe(Scope.extend(scope))
      yield* pull
      yield* Scope.close(scope, Exit.void)
      yield* gone
    })
  )

  check("interrupting an open pull does not wait for the host", (adapter, host) =>
    Effect.gen(function* () {
      const { gone } = yield* held(host)
      const reading = yield* Effect.fork(hear(adapter, host.route, request()))
      yield* host.understood
      yield* Fiber.interrupt(reading)
      yield* gone
    })
  )

  check("interrupting a JSON call cancels it", (adapter, host) =>
    Effect.gen(function* () {
      const { gone } = yield* held(host)
      const asking = yield* Effect.fork(adapter.complete(host.route, request()))
      yield* host.understood
      yield* Fiber.interrupt(asking)
      yield* gone
    })
  )
}
