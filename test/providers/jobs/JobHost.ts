import { Deferred, Effect, Queue } from "effect"
import * as Fake from "../../harness/upstream/FakeUpstream.ts"

/** A host whose calls are told apart by their step, and met one by one. */
export interface JobHost<Step extends string> {
  readonly origin: string
  /** How the next calls of a step are met, one after the other. */
  readonly meets: (step: Step, ...replies: ReadonlyArray<Fake.Reply>) => Effect.Effect<void>
  /** How every call of a step is met from now on, of which none was scripted. */
  readonly always: (step: Step, reply: Fake.Reply) => Effect.Effect<void>
  /** The next call of a step not yet looked at; waits for it. */
  readonly heard: (step: Step) => Effect.Effect<Fake.Received>
  /** How many calls of a step there were that nobody looked at. */
  readonly unseen: (step: Step) => Effect.Effect<number>
}

/** A host that meets each step as `usual` says, where nothing else was scripted. */
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

/** Scripts the next call of a step to be held for good. */
export const holding = Effect.fnUntraced(function* <Step extends string>(host: JobHost<Step>, step: Step) {
  const gone = yield* Deferred.make<void>()
  const arrived = yield* Deferred.make<void>()
  yield* host.meets(step, (_, received) => {
    Deferred.unsafeDone(gone, received.closed)
    Deferred.unsafeDone(arrived, Effect.void)
  })
  return { arrived: Deferred.await(arrived), gone: Deferred.await(gone) }
})
