import { Deferred, Effect, Schema } from "effect"
import { Organizations } from "../../../src/services/admin/Organizations.ts"
import { type Answer, assertRefused, chat, refusals, soon, talk } from "../../harness/client/HttpCalls.ts"
import * as Served from "../../harness/gateway/ServedGateway.ts"
import { assert, withLayer } from "../../harness/It.ts"
import { json, type Received, type Reply, steps } from "../../harness/upstream/FakeUpstream.ts"
import {
  answers,
  completion,
  gateway,
  maxOutput,
  nanoPerToken,
  streams,
  Upstreams,
  usual
} from "../../harness/upstream/Upstreams.ts"

const header = "x-gateway-max-output-tokens"
const leastOutput = 1_024
const { completion: perOutput, prompt: perPrompt } = nanoPerToken
/** What "hi" is held as. */
const prompt = 50n * perPrompt
const holdOf = (output: number) => prompt + BigInt(output) * perOutput
const full = { ...talk("talk"), max_tokens: maxOutput }

const told = ({ headers }: Answer) => {
  const cap = headers.get(header)
  return cap === null ? undefined : Number(cap)
}
const Capped = Schema.Struct({ max_tokens: Schema.Number })
const capIn = (call: Received | undefined) => Schema.decodeUnknownSync(Capped)(call?.body).max_tokens

const gated = (gate: Deferred.Deferred<void>): Reply =>
  steps({ type: "application/json" }, Deferred.await(gate), JSON.stringify(completion("fine", usual)))

const fitting = (nanoUsd: bigint) => Served.customer({ nanoUsd, canReduceHold: true })

withLayer(gateway({ talk: {} }))("a chat whose hold is fitted", (it) => {
  it.effect.each([false, true])("runs with a lower cap, which the header tells (stream: %s)", function* (stream) {
    const { first } = yield* Upstreams
    const customer = yield* fitting(holdOf(maxOutput) - 1n)
    yield* first.script(stream ? streams("fine") : answers())
    const answer = yield* chat(customer, { ...full, stream })
    assert.strictEqual(answer.status, 200, answer.text)
    const cap = told(answer)
    // One that runs alone gets half of what is there.
    assert.strictEqual(cap, Number(((holdOf(maxOutput) - 1n) / 2n - prompt) / perOutput))
    assert.strictEqual(capIn(first.calls.at(-1)), cap)
    assert.deepStrictEqual((yield* Served.logged(answer.headers.get("x-request-id"))).notes, ["cap_lowered"])
    assert.strictEqual(yield* customer.spentInTheEnd, 20_000n)
  })

  it.effect("keeps its cap where the balance covers it, and the answer names no lower one", function* () {
    const { first } = yield* Upstreams
    yield* first.script(answers())
    const answer = yield* chat(yield* fitting(holdOf(maxOutput)), full)
    assert.deepStrictEqual([answer.status, told(answer)], [200, undefined])
    assert.strictEqual(capIn(first.calls.at(-1)), maxOutput)
  })

  it.effect("is billed for no more output than the lower cap", function* () {
    const { first } = yield* Upstreams
    const customer = yield* fitting(holdOf(leastOutput))
    const produced = { prompt_tokens: 10, completion_tokens: 5_000, total_tokens: 5_010 }
    yield* first.script(json(200, completion("fine", produced)))
    const answer = yield* chat(customer, full)
    assert.deepStrictEqual([answer.status, told(answer)], [200, leastOutput])
    assert.strictEqual(yield* customer.spentInTheEnd, 10n * perPrompt + BigInt(leastOutput) * perOutput)
  })

  it.effect("is refused where its prompt with 1,024 tokens of output is not covered, to the nano-dollar", function* () {
    const [least, short] = [holdOf(leastOutput), holdOf(10)]
    assertRefused(yield* chat(yield* fitting(least - 1n), full), refusals.shortOf(least, least - 1n, "at least"))
    const { first } = yield* Upstreams
    yield* first.script(answers())
    const answer = yield* chat(yield* fitting(short), { ...talk("talk"), max_tokens: 10 })
    assert.deepStrictEqual([answer.status, told(answer)], [200, undefined])
    assertRefused(
      yield* chat(yield* fitting(short - 1n), { ...talk("talk"), max_tokens: 10 }),
      refusals.shortOf(short, short - 1n, "at least")
    )
  })

  it.effect("is refused like any other where its organization has not asked for it", function* () {
    const customer = yield* Served.customer({ nanoUsd: holdOf(maxOutput) - 1n })
    assertRefused(yield* chat(customer, full), refusals.shortOf(holdOf(maxOutput), holdOf(maxOutput) - 1n))
    const { first } = yield* Upstreams
    yield* (yield* Organizations).update(customer.org, { fit_holds: true })
    yield* first.script(answers())
    yield* soon(Effect.map(chat(customer, full), ({ status }) => assert.strictEqual(status, 200)))
  })

  it.effect("waits until another's hold is closed, if only that is in its way, also with a large body", function* () {
    const { first } = yield* Upstreams
    const customer = yield* fitting(holdOf(maxOutput))
    const gate = yield* Deferred.make<void>()
    const calls = first.calls.length
    yield* first.script(gated(gate), answers(), answers())
    const second = soon(Effect.sync(() => assert.lengthOf(first.calls, calls + 1))).pipe(
      Effect.zipRight(
        Effect.all(
          [
            chat(customer, full),
            chat(customer, { ...full, metadata: { filler: "x".repeat(2_000_000) } }),
            Effect.delay(Deferred.succeed(gate, undefined), "700 millis")
          ],
          { concurrency: "unbounded" }
        )
      )
    )
    const [one, [two, three]] = yield* Effect.all([chat(customer, full), second], { concurrency: "unbounded" })
    assert.deepStrictEqual([one.status, two.status, three.status], [200, 200, 200], two.text + three.text)
    assert.strictEqual(told(one), undefined)
    assert.strictEqual(yield* customer.spentInTheEnd, 60_000n)
  })

  it.effect("is refused at once where its key's cap is reached", function* () {
    const { first } = yield* Upstreams
    const cap = { amount: 20_000n, period: "day" } as const
    const customer = yield* Served.customer({ nanoUsd: 3_000_000n, canReduceHold: true, cap })
    yield* first.script(answers())
    assert.strictEqual((yield* chat(customer, full)).status, 200)
    assertRefused(yield* chat(customer, full), refusals.capped("day"))
  })
})
