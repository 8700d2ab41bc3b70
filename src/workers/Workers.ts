import cluster, { type Worker } from "node:cluster"
import type { EventEmitter } from "node:events"
import { Deferred, Duration, Effect, FiberSet, Layer, Queue } from "effect"
import { type Families, MetricsSource, snapshot, sum, withoutGauges } from "../http/system/Prometheus.ts"
import { Siblings } from "../services/instance/Instance.ts"
import { workerRestarts } from "../services/runtime/Schedules.ts"

type Message =
  | { readonly type: "ready" | "reload" | "metricsRequest" }
  | { readonly type: "metrics"; readonly families: Families }
  /** From a worker: its instance id. From the main process: the instance ids of all workers and of some that have ended. */
  | { readonly type: "instances"; readonly ids: ReadonlyArray<string> }

/** Connects the main process and a worker. Each responds to the other's request for metrics with its `families`. */
const connect = (
  port: EventEmitter & Pick<NodeJS.Process, "send">,
  fork: (effect: Effect.Effect<unknown>) => unknown,
  families: Effect.Effect<Families>,
  handle: (message: Message) => Effect.Effect<unknown>
) => {
  const waiting = new Set<Deferred.Deferred<Families>>()
  // Ignores errors, because the other process may have ended.
  const send = (message: Message) => Effect.sync(() => void port.send?.(message, undefined, undefined, () => {}))
  const receive = (message: Message): Effect.Effect<unknown> => {
    if (message.type === "metricsRequest")
      return Effect.flatMap(families, (all) => send({ type: "metrics", families: all }))
    if (message.type !== "metrics") return handle(message)
    return Effect.forEach(waiting, (answer) => Deferred.succeed(answer, message.families))
  }
  port.on("message", (message: Message) => fork(receive(message)))
  const requestMetrics = Effect.acquireUseRelease(
    Effect.tap(Deferred.make<Families>(), (answer) => waiting.add(answer)),
    (answer) => Effect.zipRight(send({ type: "metricsRequest" }), answer),
    (answer) => Effect.sync(() => waiting.delete(answer))
  )
  return { send, requestMetrics }
}

/** Connects a worker to the main process, which handles second signals and SIGHUP for all workers. */
export const connectToMain = Effect.gen(function* () {
  const fork = yield* FiberSet.makeRuntime()
  const reloads = yield* Queue.sliding<void>(1)
  let ids: ReadonlyArray<string> = []
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => {})
  const { worker } = cluster
  // Stops gracefully when the main process has ended, because Node would otherwise end the worker in the middle of requests.
  worker?.once("disconnect", () => {
    worker.exitedAfterDisconnect = true
    process.kill(process.pid, "SIGTERM")
  })
  const { requestMetrics, send } = connect(process, fork, snapshot, (message) => {
    if (message.type === "instances") ids = message.ids
    return message.type === "reload" ? Queue.offer(reloads, undefined) : Effect.void
  })
  // Longer than the main process waits for its workers.
  const families = Effect.orElse(Effect.timeout(requestMetrics, "3 seconds"), () => snapshot)
  const register = (id: string) => send({ type: "instances", ids: [id] })
  return {
    reloads,
    ready: send({ type: "ready" }),
    layer: Layer.merge(
      Layer.succeed(MetricsSource, { families }),
      Layer.succeed(Siblings, { register, ids: Effect.sync(() => ids) })
    )
  }
})

interface Member extends ReturnType<typeof connect> {
  readonly worker: Worker
  readonly name: string
  readonly endReason: Deferred.Deferred<string>
  /** The worker's latest metrics, which are used while it does not respond. */
  families: Families
}

/** How a worker ends normally. A signal ends a worker that is still loading and has no handlers yet. */
const normalEndReasons = ["exit code 0", "SIGTERM", "SIGINT"]

/**
 * Runs `count` workers until interrupted. First starts one worker, which migrates the database. If that fails, returns its exit
 * code. Each item of `hangups` makes all workers reload the catalog.
 */
export const run = (count: number, hangups: Queue.Dequeue<void>) =>
  Effect.gen(function* () {
    const fork = yield* FiberSet.makeRuntime()
    const firstReady = yield* Deferred.make<void>()
    const members = new Set<Member>()
    let ids: ReadonlyArray<string> = []
    let retired: Families = []

    const broadcast = (message: Message) =>
      Effect.suspend(() => Effect.forEach(members, ({ send }) => send(message), { discard: true }))

    const refresh = (member: Member) => Effect.map(member.requestMetrics, (families) => (member.families = families))
    const total = Effect.suspend(() => Effect.forEach(members, refresh, { concurrency: "unbounded" })).pipe(
      Effect.timeoutOption("1 second"),
      Effect.map(() => sum([retired, ...Array.from(members, ({ families }) => families)]))
    )

    const start = Effect.map(Deferred.make<string>(), (endReason) => {
      const worker = cluster.fork({ WORKERS: count })
      const name = `Worker ${worker.id} (pid ${worker.process.pid})`
      const connection = connect(worker.process, fork, total, (message) => {
        if (message.type === "ready") {
          return Effect.zipRight(Effect.logInfo(`${name} serves`), Deferred.succeed(firstReady, undefined))
        }
        if (message.type === "instances") ids = [...ids, ...message.ids].slice(-1_000)
        return broadcast({ type: "instances", ids })
      })
      const member: Member = { ...connection, worker, name, endReason, families: [] }
      const end = (reason: string) => Deferred.unsafeDone(endReason, Effect.succeed(reason))
      worker.on("exit", (code, signal: string | null) => end(signal ?? `exit code ${code}`))
      worker.on("error", ({ message }) => worker.process.pid === undefined && end(message))
      members.add(member)
      return member
    })

    const awaitUnexpectedEnd = Effect.fnUntraced(function* ({ endReason, name, worker }: Member) {
      const reason = yield* Deferred.await(endReason)
      if (!(yield* Deferred.isDone(firstReady))) return yield* Effect.fail(worker.process.exitCode ?? 1)
      yield* Effect.logError(`${name} ended (${reason}). Starting a replacement`)
    })

    const stop = Effect.fnUntraced(function* (member: Member) {
      const hasEnded = yield* Deferred.isDone(member.endReason)
      member.worker.process.kill("SIGTERM")
      const reason = yield* Deferred.await(member.endReason)
      members.delete(member)
      retired = sum([retired, withoutGauges(member.families)])
      if (!hasEnded && !normalEndReasons.includes(reason))
        yield* Effect.dieMessage(`${member.name} failed to stop (${reason})`)
    })

    const superviseWorker = Effect.acquireUseRelease(start, awaitUnexpectedEnd, stop).pipe(
      Effect.catchAllDefect((error) => Effect.logError("A worker cannot be started", error)),
      Effect.timed,
      // Pauses start again from the shortest after a worker has run for a minute.
      Effect.repeat({
        schedule: workerRestarts,
        while: ([lifetime]) => Duration.lessThan(lifetime, "1 minute")
      }),
      Effect.forever
    )

    yield* Queue.take(hangups).pipe(Effect.zipRight(broadcast({ type: "reload" })), Effect.forever, Effect.forkScoped)
    const others = Array.from({ length: count - 1 }, () => Effect.zipRight(firstReady, superviseWorker))
    yield* Effect.all([superviseWorker, ...others], { concurrency: "unbounded", discard: true })
    return yield* Effect.never
  }).pipe(Effect.scoped, Effect.merge)
