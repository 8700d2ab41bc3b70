import { assert, layer as withLayer } from "@effect/vitest"
import { Deferred, Effect, Fiber } from "effect"
import { ConflictError, toFile } from "openai"
import { refusals } from "../harness/client/HttpCalls.ts"
import { asJson, assertTold, calling, thrownBy } from "../harness/client/OfficialClients.ts"
import { gateway, usualPrice } from "../harness/gateway/ImageGateway.ts"
import * as Served from "../harness/gateway/ServedGateway.ts"
import { json, steps } from "../harness/upstream/FakeUpstream.ts"
import { painted, painting, paints } from "../harness/upstream/ImageReplies.ts"
import { Upstreams } from "../harness/upstream/Upstreams.ts"

const asked = { model: "art", prompt: "a cat" }

withLayer(gateway({ art: {} }), { excludeTestServices: true })(
  "an image that the official client asks for again",
  (it) => {
    it.effect("after it gave up waiting: its own retry is a conflict, at once, and a later one gets the image", () =>
      Effect.gen(function* () {
        const { first } = yield* Upstreams
        const { openai, spentInTheEnd } = yield* Served.customer()
        const gate = yield* Deferred.make<void>()
        const calls = first.calls.length
        const reply = JSON.stringify(painted(painting, { revised_prompt: "a grey cat" }))
        yield* first.script(steps({ type: "application/json" }, Deferred.await(gate), reply))
        const headers = { "Idempotency-Key": "mine" }
        const waiting = thrownBy(() => openai.images.generate(asked, { headers, timeout: 1_500, maxRetries: 5 }))
        const conflict = yield* Fiber.join(yield* Effect.fork(waiting))
        assertTold(conflict, ConflictError, refusals.conflict)
        yield* Deferred.succeed(gate, undefined)
        assert.strictEqual(yield* spentInTheEnd, usualPrice)
        const { data, response } = yield* calling(() => openai.images.generate(asked, { headers }).withResponse())
        assert.strictEqual(response.headers.get("idempotency-replayed"), "true")
        assert.strictEqual(data.data?.[0]?.revised_prompt, "a grey cat")
        assert.deepStrictEqual(asJson(yield* calling(() => openai.images.generate(asked, { headers }))), asJson(data))
        assert.lengthOf(first.calls, calls + 1)
        assert.strictEqual(yield* spentInTheEnd, usualPrice)
      })
    )

    it.effect("after a failure: its own retry of a form is served", () =>
      Effect.gen(function* () {
        const { first } = yield* Upstreams
        const { openai, spent } = yield* Served.customer()
        yield* first.script(json(503, {}), paints())
        const file = yield* Effect.promise(() => toFile(painting, "a.png"))
        const options = { headers: { "Idempotency-Key": "mine" }, maxRetries: 1 }
        const edit = calling(() => openai.images.edit({ ...asked, image: file }, options))
        const { data } = yield* edit
        assert.match(data?.[0]?.url ?? "", /^http/)
        assert.strictEqual((yield* edit).data?.[0]?.url, data?.[0]?.url)
        assert.strictEqual(yield* spent, usualPrice)
      })
    )
  }
)
