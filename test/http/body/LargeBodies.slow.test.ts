import { readFileSync } from "node:fs"
import { Agent, request } from "node:http"
import { fileURLToPath } from "node:url"
import { Effect, Schedule } from "effect"
import * as Served from "../../harness/gateway/ServedGateway.ts"
import { assert, withLayer } from "../../harness/It.ts"
import { type HostileBody, hostileBodies, largeBodies, model } from "./HostileBodies.ts"

/** Milliseconds of work between two turns of the event loop. About 50 are usual. */
const longestWork = 250

/**
 * A virtual machine counts the time that its host takes away as work of the process. A body that is read in one piece is
 * slow every time, so the shortest of several tries counts.
 */
const tries = 5

const probe = fileURLToPath(new URL("LoopDelay.mjs", import.meta.url))
const served = Served.processLayer(
  Effect.succeed({ env: { SANDBOX: "true", NODE_OPTIONS: `--import ${probe}`, DEFAULT_RPM: "100000" } })
)

interface Outcome {
  readonly status: number
  readonly text: string
  readonly millis: number
}

const agent = new Agent({ keepAlive: true })

const send = (
  url: string,
  secret: string,
  { path, type = "application/json" }: Pick<HostileBody, "path" | "type">,
  body: Buffer
) =>
  Effect.async<Outcome>((resume) => {
    const start = performance.now()
    const headers = { authorization: `Bearer ${secret}`, "content-type": type, "content-length": body.length }
    const sent = request(`${url}/v1${path}`, { method: "POST", agent, headers }, (response) => {
      let text = ""
      response.setEncoding("utf8").on("data", (piece: string) => (text += piece))
      response.on("end", () =>
        resume(Effect.succeed({ status: response.statusCode ?? 0, text, millis: performance.now() - start }))
      )
    })
    sent.on("error", (error) => resume(Effect.die(error)))
    sent.end(body)
  })

const small = Buffer.from(JSON.stringify({ model, max_tokens: 5, messages: [{ role: "user", content: "hi" }] }))

/** Milliseconds that the main thread of a process has worked so far; of the clock where nothing tells. */
const worked = (pid: number | undefined): number => {
  try {
    return Number(readFileSync(`/proc/${pid}/task/${pid}/schedstat`, "utf8").split(" ")[0]) / 1e6
  } catch {
    return performance.now()
  }
}

/**
 * A customer beside the others, who asks small things one after the other; for each the milliseconds that the gateway
 * worked until the answer came. The clock would count what else the machine does.
 */
const neighbour = Effect.gen(function* () {
  const { process, url } = yield* Served.ServedProcess
  const { secret } = yield* Served.customer()
  const waits: Array<number> = []
  const ask = Effect.gen(function* () {
    const before = worked(process.pid)
    const { status, text } = yield* send(url, secret, { path: "/chat/completions" }, small)
    assert.strictEqual(status, 200, text)
    waits.push(worked(process.pid) - before)
  })
  yield* Effect.replicateEffect(ask, 50)
  console.log(`alone: neighbour ${worst(waits)} ms`)
  yield* Effect.forkScoped(Effect.repeat(ask, Schedule.spaced("10 millis")))
  return waits
})

/** The longest work between two turns of the gateway's event loop since the last time, in milliseconds. */
const loopDelay = Effect.gen(function* () {
  const gateway = yield* Served.ServedProcess
  const seen = gateway.stderr().length
  yield* gateway.signal("SIGUSR2")
  return yield* Effect.sync(() => /loop-delay (\d+)/.exec(gateway.stderr().slice(seen))?.[1]).pipe(
    Effect.flatMap(Effect.fromNullable),
    Effect.map(Number),
    Effect.retry(Schedule.spaced("5 millis")),
    Effect.orDie
  )
})

const worst = (waits: ReadonlyArray<number>) => Math.round(Math.max(0, ...waits))
/** Nine in ten wait for no longer; the others may have waited for the database, while the gateway worked for others. */
const usual = (waits: ReadonlyArray<number>) =>
  Math.round(waits.toSorted((a, b) => a - b)[Math.floor(0.9 * waits.length)] ?? Number.POSITIVE_INFINITY)

withLayer(served)("large bodies", (it) => {
  const options = { timeout: 300_000 }

  it.scoped(
    "do not delay small requests beside them when they come one after the other",
    function* () {
      const { url } = yield* Served.ServedGateway
      const { secret } = yield* Served.customer({ nanoUsd: 1_000_000_000_000_000n })
      const waits = yield* neighbour
      const problems: Array<string> = []
      for (const hostile of [...hostileBodies, ...largeBodies]) {
        const body = Buffer.from(hostile.make())
        for (let attempt = 1; attempt <= tries; attempt++) {
          yield* Effect.sleep("50 millis")
          yield* loopDelay
          waits.length = 0
          const { millis, status, text } = yield* send(url, secret, hostile, body)
          const held = yield* loopDelay
          const found = `${hostile.name}: ${status} in ${Math.round(millis)} ms, loop ${held} ms, neighbour ${worst(waits)} ms`
          console.log(found)
          const isSlow = Math.max(held, worst(waits)) >= longestWork
          if (status !== hostile.status) problems.push(`${found}: ${text.slice(0, 300)}`)
          else if (isSlow && attempt === tries) problems.push(found)
          if (!isSlow) break
        }
      }
      assert.deepStrictEqual(problems, [])
    },
    options
  )

  it.scoped(
    "do not delay small requests beside them when they come all at once",
    function* () {
      const { url } = yield* Served.ServedGateway
      const { secret } = yield* Served.customer({ nanoUsd: 1_000_000_000_000_000n })
      const bodies = hostileBodies.map((hostile) => ({ hostile, body: Buffer.from(hostile.make()) }))
      const waits = yield* neighbour
      const measured = yield* Effect.gen(function* () {
        yield* Effect.sleep("100 millis")
        yield* loopDelay
        waits.length = 0
        const all = yield* Effect.forEach(bodies, ({ body, hostile }) => send(url, secret, hostile, body), {
          concurrency: 8
        })
        const held = yield* loopDelay
        console.log(
          `all at once: event loop ${held} ms, neighbour ${usual(waits)} to ${worst(waits)} ms of ${waits.length}`
        )
        assert.deepStrictEqual(
          all.map(({ status }) => status),
          bodies.map(({ hostile }) => hostile.status)
        )
        return Math.max(held, usual(waits))
      }).pipe(Effect.repeat({ until: (longest) => longest < longestWork, times: tries - 1 }))
      assert.isBelow(measured, longestWork)
    },
    options
  )
})
