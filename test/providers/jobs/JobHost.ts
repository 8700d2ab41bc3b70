import { Deferred, Effect, Queue } from "effect"
import * as Fake from "../../harness/upstream/FakeUpstream.ts"

/** A fake host with scripted replies by step of the job. */
export interface JobHost<Step extends string> {
  readonly origin: string
  /** Scripts the replies to the next calls of a step, in order. */
  readonly meets: (step: Step, ...replies: ReadonlyArray<Fake.Reply>) => Effect.Effect<void>
  /** Sets the default reply to calls of a step. */
  readonly always: (step: Step, reply: Fake.Reply) => Effect.Effect<void>
  /** Waits for the next unread call of a step. */
  readonly heard: (step: Step) => Effect.Effect<Fake.Received>
  /** Counts the unread calls of a step. */
  readonly unseen: (step: Step) => Effect.Effect<number>
}

/** Makes a host with default replies for each step. */
export const make = Effect.fnUntraced(function* <Step extends string>(
  stepOf: (received: Fake.Received) => Step,
  usual: Readonly<Record<Step, Fake.Reply>>
) {
  const inboxes = new Map<Step, Queue.Queue<Fake.Received>>()
  const scripted = new Map<Step, Array<Fake.Reply>>()
  const standing = new Map<Step, Fake.Reply>()

  const inbox = (step: Step): Queue.Queue<Fake.Received> => {
    const known = inboxes.get(step) ?? Effect.runSync(Queue.unbounded<Fake.Received>())
    inboxes.set(step, known)
    return known
  }

  const fake = yield* Fake.serving((response, received) => {
    const step = stepOf(received)
    Queue.unsafeOffer(inbox(step), received)
    return (scripted.get(step)?.shift() ?? standing.get(step) ?? usual[step])(response, received)
  })

  const host: JobHost<Step> = {
    origin: fake.url,
    meets: (step, ...replies) => Effect.sync(() => scripted.set(step, [...(scripted.get(step) ?? []), ...replies])),
    always: (step, reply) => Effect.sync(() => standing.set(step, reply)),
    heard: (step) => Effect.suspend(() => Queue.take(inbox(step))),
    unseen: (step) => Effect.suspend(() => Queue.size(inbox(step)))
  }
  return host
})

/** The next call of a step never gets a reply. */
export const holding = Effect.fnUntraced(function* <Step extends string>(host: JobHost<Step>, step: Step) {
  const gone = yield* Deferred.make<void>()
  const arrived = yield* Deferred.make<void>()
  yield* host.meets(step, (_, received) => {
    Deferred.unsafeDone(gone, received.closed)
    Deferred.unsafeDone(arrived, Effect.void)
  })
  return { arrived: Deferred.await(arrived), gone: Deferred.await(gone) }
})
