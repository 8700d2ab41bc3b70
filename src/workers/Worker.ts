import cluster from "node:cluster"
import { Deferred, Effect, Layer, Option, Queue, Schema } from "effect"
import { type Families, MetricsSource, snapshot } from "../http/system/Prometheus.ts"
import { Siblings } from "../services/instance/Instance.ts"
import * as Messages from "./WorkerMessages.ts"

const decode = Schema.decodeUnknownOption(Messages.FromMain)
const encode = Schema.encodeSync(Messages.FromWorker)

/** More than the main process waits for any worker. */
const answerWithin = "3 seconds"

const send = (message: Messages.FromWorker) =>
  Effect.sync(() => {
    if (process.connected) process.send?.(encode(message), undefined, undefined, () => {})
  })

/** The main process handles a repeated signal, and every hangup, for all workers. */
const ignoreMoreSignals = Effect.sync(() => {
  process
    .on("SIGINT", () => {})
    .on("SIGTERM", () => {})
    .on("SIGHUP", () => {})
})

/** Without its main process no client reaches a worker. */
const stopWhenAlone = Effect.sync(() => {
  const { worker } = cluster
  worker?.once("disconnect", () => {
    // Else Node would end the process at once, in the middle of requests.
    worker.exitedAfterDisconnect = true
    process.kill(process.pid, "SIGTERM")
  })
})

export const connect = Effect.gen(function* () {
  const announcing = yield* Deferred.make<void>()
  const reloads = yield* Queue.sliding<void>(1)
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
      case "Reload":
        return void Queue.unsafeOffer(reloads, undefined)
      case "WorkerMetricsRequest":
        return void Effect.runFork(
          Effect.flatMap(snapshot, (families) =>
            send(new Messages.WorkerMetrics({ request: message.request, families }))
          )
        )
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
      Effect.orElse(() => snapshot),
      Effect.ensuring(Effect.sync(() => answers.delete(request)))
    )
  })

  return {
    /** Returns once this worker is to print the banner. */
    awaitAnnouncing: Effect.zipRight(send(new Messages.Ready()), Deferred.await(announcing)),
    reloads,
    announced: (url: string) => send(new Messages.Announced({ url })),
    layer: Layer.merge(
      Layer.succeed(MetricsSource, { families }),
      Layer.succeed(Siblings, {
        register: (instance) => send(new Messages.Registered({ instance })),
        ids: Effect.sync(() => instances)
      })
    )
  }
})
