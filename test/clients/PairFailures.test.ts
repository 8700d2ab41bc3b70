import { Effect } from "effect"
import { readProviderError } from "../../src/providers/client/Classification.ts"
import { turn } from "../contracts/ChatHarness.ts"
import { answerOf, chargeOf, hostOf, inbounds, type Pair, Payer, pairs, served } from "../contracts/Pairs.ts"
import { refusals } from "../harness/client/HttpCalls.ts"
import { customer } from "../harness/client/MessagesClient.ts"
import { calling, thrownBy } from "../harness/client/OfficialClients.ts"
import { assert, withLayer } from "../harness/It.ts"
import { answers, breaking, breaks, DialectHosts, dialectOf, theirs } from "../harness/upstream/Dialects.ts"

const question = turn("user", "hi")

const reasonOf = ({ wire }: Pair) => {
  const message = readProviderError(wire.refuse("request").body)?.message || refusals.rejected.message
  return { message, code: "context_length_exceeded" }
}

withLayer(served)("a dialect of clients over a wire", (it) => {
  it.effect.each(pairs)("moves to the next host before anything was said: $from over $over", function* (pair) {
    const { dialect, failovers, inbound, next, wire } = pair
    const hosts = yield* DialectHosts
    const payer = yield* Payer
    const reasons = [wire, next].every(({ has }) => has.features.includes("reasoning"))
    const usage = { prompt: 40, completion: 9, cached: 0, cacheWrite: 0, reasoning: reasons ? 2 : 0 }
    const reasoning = reasons ? "Let me think." : ""
    const said = { content: "Servus, world.", reasoning, finish: "stop", usage } as const
    for (const { model, outage } of failovers) {
      for (const stream of [false, true]) {
        yield* hosts.of(dialect).script(outage.reply?.(dialect) ?? assert.fail("no reply"))
        yield* hosts
          .of(dialectOf(next))
          .script(answers(dialectOf(next), { ...said, reasoning: reasoning || undefined }))
        const before = yield* payer.spent
        const { say } = inbound.open(payer, { model, reasons }, stream)
        assert.deepStrictEqual(yield* calling(() => say(question)), answerOf(pair, said), outage.what)
        assert.strictEqual((yield* payer.spent) - before, chargeOf(said), outage.what)
      }
    }
  })

  it.effect.each(pairs)("ends a broken stream in its own way, for nothing: $from over $over", function* (pair) {
    const { dialect, inbound, model } = pair
    const { script } = yield* hostOf(pair)
    const payer = yield* Payer
    const before = yield* payer.spent
    for (const { rest, what } of breaks) {
      yield* script(breaking(dialect, { content: "Servus, world.", finish: "stop" }, rest(dialect)))
      const ending = yield* calling(() => inbound.breakOff(payer, { model }))
      const { message } = refusals.upstream
      assert.deepStrictEqual(ending, { text: "Servus, world.", type: inbound.brokenType, message }, what)
      assert.strictEqual((yield* payer.funds).held, 0n, what)
      assert.strictEqual(yield* payer.spent, before, what)
    }
  })

  const refusedBy = Effect.fnUntraced(function* (
    pair: Pair,
    then: (thrown: unknown) => void,
    fault: "request" | "moderation"
  ) {
    const { fail } = yield* hostOf(pair)
    const payer = yield* Payer
    const before = yield* payer.spent
    for (const stream of [false, true]) {
      yield* fail(fault)
      const thrown = yield* thrownBy(() => pair.inbound.open(payer, { model: pair.model }, stream).say(question))
      then(thrown)
      assert.strictEqual(yield* payer.spent, before)
      for (const word of theirs) assert.notInclude(JSON.stringify(thrown), word)
    }
  })

  it.effect.each(pairs)("says why the host refused a request, where clients recover by it: $from over $over", (pair) =>
    refusedBy(pair, (thrown) => pair.inbound.assertRefused(thrown, refusals.rejected, reasonOf(pair)), "request")
  )

  it.effect.each(pairs)("tells that the host's moderation refused a prompt: $from over $over", (pair) =>
    refusedBy(pair, (thrown) => pair.inbound.assertRefused(thrown, refusals.moderated), "moderation")
  )

  const clients = inbounds.map((inbound) => ({ inbound, from: inbound.name }))
  const some = pairs[0] ?? assert.fail("no pair")

  it.effect.each(clients)("refuses a client without credits, and one above its rate: $from", function* ({ inbound }) {
    const hosts = yield* DialectHosts
    const poor = yield* customer({ nanoUsd: 0n })
    const hasty = yield* customer({ rpm: 1 })
    yield* hosts.of(some.dialect).script(answers(some.dialect, { content: "Servus.", finish: "stop" }))
    yield* calling(() => inbound.open(hasty, { model: some.model }, false).say(question))
    for (const stream of [false, true]) {
      for (const [account, refusal] of [
        [poor, refusals.insufficient],
        [hasty, refusals.limited]
      ] as const) {
        const thrown = yield* thrownBy(() => inbound.open(account, { model: some.model }, stream).say(question))
        inbound.assertRefused(thrown, refusal)
      }
    }
  })
})
