import { Deferred, Effect, Fiber } from "effect"
import { type Asked, ask } from "../harness/client/ChatClient.ts"
import { Deployment } from "../harness/gateway/Deployment.ts"
import { assert } from "../harness/It.ts"
import { after, completion, either, stream } from "../harness/upstream/Replies.ts"

/** A chat that its upstream has received, and answers when `answer` is run. */
export const chatUnderWay = Effect.fnUntraced(function* (asked: Asked) {
  const { upstream } = yield* Deployment
  const answered = yield* Deferred.make<void>()
  yield* upstream.script(after(Deferred.await(answered), either))
  const chat = yield* Effect.fork(ask(asked))
  yield* upstream.received
  return { chat, answer: Deferred.succeed(answered, undefined) }
})

/** A chat that waits for its answer, and another in the middle of its stream; `answer` lets both go on. */
export const chatAndStreamUnderWay = Effect.fnUntraced(function* (asked: Asked) {
  const { upstream } = yield* Deployment
  const answered = yield* Deferred.make<void>()
  yield* upstream.script(after(Deferred.await(answered), completion))
  const json = yield* Effect.fork(ask(asked))
  yield* upstream.received
  yield* upstream.script(stream(Deferred.await(answered)))
  const sse = yield* Effect.fork(ask({ ...asked, stream: true }))
  yield* upstream.received
  /** Both answers are complete. */
  const assertServed = Effect.gen(function* () {
    assert.strictEqual((yield* Fiber.join(json)).status, 200)
    assert.match((yield* Fiber.join(sse)).text, /\[DONE\]\n\n$/)
  })
  return { json, sse, answer: Deferred.succeed(answered, undefined), assertServed }
})
