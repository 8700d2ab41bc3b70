import { Effect, Fiber, Schedule } from "effect"
import { openAccount } from "../harness/client/Account.ts"
import { waitUntil } from "../harness/database/Money.ts"
import { deploymentTest } from "../harness/gateway/Deployment.ts"
import { assert, describe } from "../harness/It.ts"
import { freePort } from "../harness/Listening.ts"
import * as LoadBalancer from "./LoadBalancer.ts"

const model = "gemini-3.6-flash"

/** Requests at a time: on a machine that others use more would only wait, and the checks of the proxy with them. */
const most = 20

/** Longer than four checks of the proxy that time out, where others leave it and the instances little of the machine. */
const SHUTDOWN_DELAY = "15"

/** What went wrong with one chat, undefined where nothing did. */
const chat = (url: string, secret: string, stream: boolean) =>
  Effect.promise(async () => {
    try {
      const response = await fetch(`${url}/v1/chat/completions`, {
        method: "POST",
        headers: { authorization: `Bearer ${secret}`, "content-type": "application/json" },
        body: JSON.stringify({
          model,
          stream,
          max_tokens: 20,
          messages: [{ role: "user", content: "[sandbox delay=300]" }]
        })
      })
      const text = await response.text()
      const isWhole = stream ? text.endsWith("data: [DONE]\n\n") : text.includes(`"finish_reason"`)
      return response.status === 200 && isWhole ? undefined : `${response.status} ${text}`
    } catch (error) {
      return String(error instanceof Error ? (error.cause ?? error) : error)
    }
  })

describe("a rolling restart", () => {
  deploymentTest(
    "of two instances behind a proxy that asks /readyz each second fails no request",
    function* ({ gateway }) {
      const ports = [yield* freePort, yield* freePort]
      const start = (port: number) =>
        gateway({ env: { PORT: String(port), CATALOG_FILE: "", LOCAL_KEY: "", SANDBOX: "true", SHUTDOWN_DELAY } })
      const running = yield* Effect.forEach(ports, start, { concurrency: "unbounded" })
      const proxy = yield* LoadBalancer.make(running.map(({ url }) => url))
      const { secret } = yield* openAccount({ rpm: 100_000 })

      const scope = yield* Effect.scope
      const chats: Array<Fiber.Fiber<string | undefined>> = []
      const turns = yield* Effect.makeSemaphore(most)
      const traffic = yield* turns.take(1).pipe(
        Effect.andThen(() =>
          chat(proxy.url, secret, chats.length % 2 === 0).pipe(Effect.ensuring(turns.release(1)), Effect.forkIn(scope))
        ),
        Effect.map((fiber) => chats.push(fiber)),
        Effect.schedule(Schedule.fixed("50 millis")),
        Effect.fork
      )

      for (const [at, { ended, signal, url }] of running.entries()) {
        yield* waitUntil(() => running.every((one) => proxy.ready(one.url)))
        yield* signal("SIGTERM")
        assert.deepStrictEqual(yield* Effect.timeout(ended, "1 minute"), { code: 0, signal: null })
        yield* start(ports[at] ?? 0)
        yield* waitUntil(() => proxy.ready(url))
      }
      yield* Fiber.interrupt(traffic)
      const failures = yield* Fiber.join(Fiber.all(chats))
      assert.deepStrictEqual(
        failures.filter((failure) => failure !== undefined),
        []
      )
      assert.isAbove(chats.length, 200)
    }
  )
})
