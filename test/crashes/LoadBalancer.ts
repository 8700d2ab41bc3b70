import { Agent, createServer, request } from "node:http"
import { Effect, Schedule } from "effect"
import { get } from "../harness/client/ChatClient.ts"
import { listen } from "../harness/Listening.ts"

const proxyTo = (targets: ReadonlyArray<string>, ready: ReadonlySet<string>) =>
  Effect.gen(function* () {
    const agent = new Agent({ keepAlive: true })
    yield* Effect.addFinalizer(() => Effect.sync(() => agent.destroy()))
    let next = 0
    const server = createServer((incoming, outgoing) => {
      const candidates = targets.filter((target) => ready.has(target))
      const target = candidates[next++ % candidates.length]
      if (target === undefined) return void outgoing.writeHead(503).end("no target is ready")
      const upstream = request(`${target}${incoming.url}`, {
        agent,
        method: incoming.method ?? "GET",
        headers: incoming.headers
      })
      upstream.on("response", (response) => {
        outgoing.writeHead(response.statusCode ?? 502, { "content-type": response.headers["content-type"] ?? "" })
        response.on("error", () => outgoing.destroy()).pipe(outgoing)
      })
      upstream.on("error", ({ message }) => {
        if (outgoing.headersSent) outgoing.destroy()
        else outgoing.writeHead(502).end(`${target}: ${message}`)
      })
      incoming.pipe(upstream)
    })
    return `http://127.0.0.1:${yield* Effect.orDie(listen(server))}`
  })

/** A round-robin proxy over the targets whose `/readyz`, asked every second, answered 200 last. It retries nothing. */
export const make = Effect.fnUntraced(function* (targets: ReadonlyArray<string>) {
  const ready = new Set<string>()
  const check = (target: string) =>
    get(`${target}/readyz`).pipe(
      Effect.map(({ status }) => status === 200),
      Effect.orElseSucceed(() => false),
      Effect.map((isReady) => (isReady ? ready.add(target) : ready.delete(target))),
      // Late is not unready: the machine may be busy.
      Effect.timeoutOption("3 seconds")
    )
  for (const target of targets) {
    yield* check(target)
    yield* check(target).pipe(Effect.schedule(Schedule.fixed("1 second")), Effect.forkScoped)
  }
  const url = yield* proxyTo(targets, ready)
  return { url, ready: (target: string) => ready.has(target) }
})
