import cluster from "node:cluster"
import { Deferred, Effect, Layer, Option, Schema } from "effect"
import { type Families, MetricsSource, snapshot } from "../http/system/Prometheus.ts"
import { Siblings } from "../services/runtime/Instance.ts"
import * as Messages from "./WorkerMessages.ts"

const decode = Schema.decodeUnknownOption(Messages.FromMain)
const encode = Schema.encodeSync(Messages.FromWorker)

/** More than the main process waits for any worker. */
const answerWithin = "3 seconds"

/** Has no effect where the main process is gone. */
const send = (message: Messages.FromWorker) =>
  Effect.sync(() => {
    if (process.connected) process.send?.(encode(message), undefined, undefined, () => {})
  })

/** The main process speaks for all workers where a signal comes a second time; a worker has begun to stop by then. */
const ignoreMoreSignals = Effect.sync(() => {
  process.on("SIGINT", () => {}).on("SIGTERM", () => {})
})

/** Without its main process nobody can reach a worker: it stops as if it had been told to. */
const stopWhenAlone = Effect.sync(() => {
  const { worker } = cluster
  worker?.once("disconnect", () => {
    // Else the process would be ended at once, in the middle of what runs.
    worker.exitedAfterDisconnect = true
    process.kill(process.pid, "SIGTERM")
  })
})

/** This process's end of the channel to the main one, in a worker. */
export const connect = Effect.gen(function* () {
  const announcing = yield* Deferred.make<void>()
  const answers = new Map<number, Deferred.Deferred<Families>>()
  let lastRequest = 0
  let instances: ReadonlyArray<string> = []

  const handle = (message: Messages.FromMain): void => {
    switch (message._tag) {
      case "Announce":
        return Deferred.unsafeDone(announcing, Effect.void)
      case "Instances":
        instances = message.instances
        return
      case "WorkerMetricsRequest":
        return Effect.runSync(send(new Messages.WorkerMetrics({ request: message.request, families: snapshot() })))
      case "Totals": {
        const answer = answers.get(message.request)
        if (answer !== undefined) Deferred.unsafeDone(answer, Effect.succeed(message.families))
      }
    }
  }
  const onMessage = (message: unknown) => Option.match(decode(message), { onNone: () => {}, onSome: handle })

  yield* ignoreMoreSignals
  yield* stopWhenAlone
  yield* Effect.acquireRelease(
    Effect.sync(() => process.on("message", onMessage)),
    () => Effect.sync(() => process.off("message", onMessage))
  )

  const families = Effect.gen(function* () {
    lastRequest += 1
    const request = lastRequest
    const answer = yield* Deferred.make<Families>()
    answers.set(request, answer)
    yield* send(new Messages.TotalsRequest({ request }))
    return yield* Deferred.await(answer).pipe(
      Effect.timeout(answerWithin),
      Effect.orElse(() => Effect.sync(snapshot)),
      Effect.ensuring(Effect.sync(() => answers.delete(request)))
    )
  })

  return {
    /** Tells the main process that this one serves, and returns once it is to show what a start shows. */
    awaitAnnouncing: Effect.zipRight(send(new Messages.Ready()), Deferred.await(announcing)),
    announced: (url: string) => send(new Messages.Announced({ url })),
    /** What the gateway has in common with the other workers. */
    layer: Layer.merge(
      Layer.succeed(MetricsSource, { families }),
      Layer.succeed(Siblings, {
        register: (instance) => send(new Messages.Registered({ instance })),
        ids: Effect.sync(() => instances)
      })
    )
  }
})
