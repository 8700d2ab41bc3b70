import cluster, { type Worker } from "node:cluster"
import {
  Array as Arr,
  Cause,
  Clock,
  Data,
  Deferred,
  Duration,
  Effect,
  FiberSet,
  Option,
  Queue,
  Schedule,
  Schema
} from "effect"
import { type Families, sum, withoutGauges } from "../http/system/Prometheus.ts"
import { closeLostHandoffs } from "../node/ConnectionHandoffs.ts"
import { type Environment, environmentOfWorkers } from "../settings/Environment.ts"
import * as Messages from "./WorkerMessages.ts"

class NotStarted extends Data.TaggedError("NotStarted")<{ readonly code: number }> {}

interface End {
  readonly code: number | null
  readonly signal: string | null
}

interface Member {
  readonly worker: Worker
  readonly ready: Deferred.Deferred<void>
  readonly announced: Deferred.Deferred<string>
  readonly ended: Deferred.Deferred<End>
  readonly answers: Map<number, Deferred.Deferred<void>>
  readonly instances: Set<string>
  /** On the clock of `Clock.currentTimeNanos`. */
  readyAt: bigint | undefined
  families: Families
}

const decode = Schema.decodeUnknownOption(Messages.FromWorker)
const encode = Schema.encodeSync(Messages.FromMain)

const restarts = Schedule.exponential("250 millis").pipe(Schedule.union(Schedule.spaced("30 seconds")))
/** After this long the restart delays begin anew. */
const stableAfter = Duration.minutes(1)
const rememberedFor = "1 minute"
/** A worker that does not answer is shown with its last metrics. */
const answerWithin = "1 second"

const describe = ({ code, signal }: End) => (signal === null ? `exit code ${code}` : signal)

const codeOf = ({ code }: End) => code ?? 1

/** While loading, a worker has no handler for a stop yet. */
const isStopped = ({ code, signal }: End) => code === 0 || signal === "SIGTERM" || signal === "SIGINT"

const name = ({ worker }: Member) => `Worker ${worker.id} (pid ${worker.process.pid})`

export const killAll = () => {
  for (const worker of Object.values(cluster.workers ?? {})) worker?.process.kill("SIGKILL")
}

const send = ({ worker }: Member, message: Messages.FromMain) =>
  Effect.sync(() => {
    if (worker.isConnected()) worker.process.send(encode(message), undefined, undefined, () => {})
  })

/** They stop, and are waited for, when the scope closes. */
const makePool = Effect.fnUntraced(function* (environment: Environment) {
  const members = new Set<Member>()
  const instances = new Set<string>()
  let retired: Families = []
  let lastRequest = 0
  const fork = yield* FiberSet.makeRuntime()

  const broadcast = (message: Messages.FromMain) =>
    Effect.suspend(() => Effect.forEach(members, (member) => send(member, message), { discard: true }))

  const ask = (member: Member, request: number) =>
    Effect.gen(function* () {
      const answer = yield* Deferred.make<void>()
      member.answers.set(request, answer)
      yield* send(member, new Messages.WorkerMetricsRequest({ request }))
      yield* Effect.raceFirst(Deferred.await(answer), Deferred.await(member.ended))
    }).pipe(Effect.timeoutOption(answerWithin), Effect.ensuring(Effect.sync(() => member.answers.delete(request))))

  const families = Effect.suspend(() => {
    lastRequest += 1
    const request = lastRequest
    const serving = [...members].filter(({ readyAt }) => readyAt !== undefined)
    return Effect.forEach(serving, (member) => ask(member, request), { concurrency: "unbounded", discard: true })
  }).pipe(Effect.map(() => sum([retired, ...Arr.map([...members], (member) => member.families)])))

  const handle = (member: Member, message: Messages.FromWorker): Effect.Effect<void> => {
    switch (message._tag) {
      case "Ready":
        return Clock.currentTimeNanos.pipe(
          Effect.tap((now) => Effect.sync(() => (member.readyAt = now))),
          Effect.zipRight(Effect.logInfo(`${name(member)} serves`)),
          Effect.zipRight(Deferred.succeed(member.ready, undefined))
        )
      case "Announced":
        return Deferred.succeed(member.announced, message.url)
      case "Registered":
        member.instances.add(message.instance)
        instances.add(message.instance)
        return broadcast(new Messages.Instances({ instances: [...instances] }))
      case "TotalsRequest": {
        const { request } = message
        return Effect.flatMap(families, (all) => send(member, new Messages.Totals({ request, families: all })))
      }
      case "WorkerMetrics": {
        member.families = message.families
        const answer = member.answers.get(message.request)
        return answer === undefined ? Effect.void : Deferred.succeed(answer, undefined)
      }
    }
  }

  const remove = (member: Member, end: End) => {
    if (!members.delete(member)) return
    retired = sum([retired, withoutGauges(member.families)])
    const removeInstances = Effect.sync(() => member.instances.forEach((id) => instances.delete(id)))
    fork(Effect.delay(removeInstances, rememberedFor))
    Deferred.unsafeDone(member.ended, Effect.succeed(end))
  }

  const add = Effect.gen(function* () {
    const ready = yield* Deferred.make<void>()
    const announced = yield* Deferred.make<string>()
    const ended = yield* Deferred.make<End>()
    return yield* Effect.try(() => {
      const worker = cluster.fork(environment)
      const member: Member = {
        worker,
        ready,
        announced,
        ended,
        answers: new Map(),
        instances: new Set(),
        readyAt: undefined,
        families: []
      }
      members.add(member)
      closeLostHandoffs(worker)
      worker
        .on("message", (message: unknown) => Option.map(decode(message), (decoded) => fork(handle(member, decoded))))
        .on("exit", (code, signal) => remove(member, { code, signal }))
        .on("error", () => worker.process.pid === undefined && remove(member, { code: 1, signal: null }))
      return member
    }).pipe(
      Effect.tapError(({ error }) => Effect.logError("A worker cannot be started", Cause.fail(error))),
      Effect.mapError(() => new NotStarted({ code: 1 }))
    )
  })

  const awaitUnlessEnded = <A>(member: Member, done: Deferred.Deferred<A>) =>
    Effect.raceFirst(
      Deferred.await(done),
      Effect.flatMap(Deferred.await(member.ended), (end) => new NotStarted({ code: codeOf(end) }))
    )

  const start = Effect.tap(add, (member) => awaitUnlessEnded(member, member.ready))

  const announce = (member: Member) =>
    Effect.zipRight(send(member, new Messages.Announce()), awaitUnlessEnded(member, member.announced))

  const restartForever = Effect.fnUntraced(function* (first: Member) {
    const pause = yield* Schedule.driver(restarts)
    let member = first
    while (true) {
      const end = yield* Deferred.await(member.ended)
      const livedFor = (yield* Clock.currentTimeNanos) - (member.readyAt ?? (yield* Clock.currentTimeNanos))
      if (Duration.greaterThan(Duration.nanos(livedFor), stableAfter)) yield* pause.reset
      yield* Effect.logError(`${name(member)} has ended (${describe(end)}): starting another`)
      member = yield* Effect.retry(Effect.zipRight(Effect.ignore(pause.next(undefined)), add), Schedule.forever)
    }
  })

  const stop = Effect.gen(function* () {
    const stopping = [...members]
    for (const { worker } of stopping) worker.process.kill("SIGTERM")
    const ends = yield* Effect.forEach(stopping, (member) => Deferred.await(member.ended), {
      concurrency: "unbounded"
    })
    const failed = ends.filter((end) => !isStopped(end))
    if (failed.length > 0) yield* Effect.dieMessage(`Workers failed to stop: ${failed.map(describe).join(", ")}`)
  })
  yield* Effect.addFinalizer(() => stop)

  return { start, announce, reload: broadcast(new Messages.Reload()), restartForever }
})

interface Options {
  readonly count: number
  readonly environment: Environment
  /** Each makes all workers read the catalog again. */
  readonly hangups: Queue.Dequeue<void>
}

/** The first worker starts alone, to migrate the database; ends with the exit code of a failed first start. */
export const run = ({ count, environment, hangups }: Options) =>
  Effect.gen(function* () {
    const { announce, reload, restartForever, start } = yield* makePool(environmentOfWorkers(environment))
    yield* Queue.take(hangups).pipe(Effect.zipRight(reload), Effect.forever, Effect.forkScoped)
    const first = yield* start
    const others = yield* Effect.all(
      Arr.makeBy(count - 1, () => start),
      { concurrency: "unbounded" }
    )
    const url = yield* announce(first)
    yield* Effect.logInfo(`Listening on ${url} with ${count} workers`)
    return yield* Effect.zipRight(
      Effect.forEach([first, ...others], restartForever, { concurrency: "unbounded", discard: true }),
      Effect.never
    )
  }).pipe(
    Effect.scoped,
    Effect.catchTag("NotStarted", ({ code }) => Effect.succeed(code))
  )
