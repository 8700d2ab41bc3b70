import { Effect, Struct } from "effect"
import type { RequestRow } from "../../../src/services/telemetry/RequestLog.ts"
import { bearer, call, chat, talk } from "../../harness/client/HttpCalls.ts"
import { draw, gateway as ofImages } from "../../harness/gateway/ImageGateway.ts"
import * as Served from "../../harness/gateway/ServedGateway.ts"
import { assert, withLayer } from "../../harness/It.ts"
import { json, type Reply } from "../../harness/upstream/FakeUpstream.ts"
import { asked, paints } from "../../harness/upstream/Replies.ts"
import { answers, gateway, onFirst, onSecond, streams, Upstreams } from "../../harness/upstream/Upstreams.ts"

/** The reply with a header more. */
const naming =
  (reply: Reply, name: string, id: string): Reply =>
  (response, received) => {
    response.setHeader(name, id)
    return reply(response, received)
  }

const pair = { routes: [onFirst, onSecond] }
const userAgent = `Mozilla/5.0\u0085 ${"x".repeat(300)}`
const cutAgent = `Mozilla/5.0 ${"x".repeat(188)}`
const sent = (id: string) => ({ headers: { "x-request-id": id, "user-agent": userAgent } })

/** Nothing that the customer can read has it. */
const assertHidden = Effect.fnUntraced(function* (customer: Served.Customer, requestId: string, answer: unknown) {
  const told = yield* call(`/v1/usage/requests/${requestId}`, { headers: bearer(customer.secret) })
  assert.strictEqual(told.status, 200)
  assert.notInclude(JSON.stringify([answer, told]), "theirs-")
})

withLayer(gateway({ pair }))("where a chat came from", (it) => {
  it.effect.each([
    { what: "a whole answer", reply: answers("fine"), stream: false },
    { what: "a stream", reply: streams("fine"), stream: true }
  ])("is in the log, with the provider's id of each attempt, for $what", function* ({ reply, stream }) {
    const { first, second } = yield* Upstreams
    const customer = yield* Served.customer()
    yield* first.script(naming(json(503, {}), "request-id", "theirs-1"))
    yield* second.script(naming(reply, "x-request-id", `theirs-2${"y".repeat(300)}`))
    const requestId = `origin-${stream}`
    const answer = yield* chat(customer, { ...talk("pair"), stream }, sent(requestId))
    assert.strictEqual(answer.status, 200)
    const row = yield* Served.logged(requestId)
    const last = `theirs-2${"y".repeat(192)}`
    assert.deepInclude<Partial<RequestRow>>(row, { address: "127.0.0.1", userAgent: cutAgent, providerRequestId: last })
    assert.deepStrictEqual(row.attempts.map(Struct.get("providerRequestId")), ["theirs-1", last])
    yield* assertHidden(customer, requestId, answer)
  })

  it.effect("keeps the id of an attempt that was refused when the next is not answered", function* () {
    const { first, second } = yield* Upstreams
    const customer = yield* Served.customer()
    yield* first.script(naming(json(429, {}), "x-request-id", "theirs-3"))
    yield* second.script((response) => void response.socket?.destroy())
    const answer = yield* chat(customer, talk("pair"), sent("origin-failed"))
    const row = yield* Served.logged("origin-failed")
    assert.strictEqual(row.providerRequestId, "theirs-3")
    assert.deepStrictEqual(row.attempts.map(Struct.get("providerRequestId")), ["theirs-3", undefined])
    yield* assertHidden(customer, "origin-failed", answer)
  })

  it.effect("is in the row of a refused request, which has no provider", function* () {
    const customer = yield* Served.customer()
    yield* chat(customer, "{", sent("origin-refused"))
    const row = yield* Served.logged("origin-refused")
    assert.deepInclude<Partial<RequestRow>>(row, { address: "127.0.0.1", userAgent: cutAgent, providerRequestId: null })
  })
})

withLayer(ofImages({ pair }))("where an image came from", (it) => {
  it.effect("is in the log, with the provider's id", function* () {
    const { first } = yield* Upstreams
    const customer = yield* Served.customer()
    yield* first.script(naming(paints(), "apim-request-id", "theirs-4"))
    const answer = yield* draw(customer, asked("pair"), sent("origin-image"))
    const row = yield* Served.logged("origin-image")
    assert.deepInclude<Partial<RequestRow>>(row, { status: 200, userAgent: cutAgent, providerRequestId: "theirs-4" })
    yield* assertHidden(customer, "origin-image", answer)
  })
})
