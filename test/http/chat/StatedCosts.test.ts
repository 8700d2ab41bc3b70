import { Effect } from "effect"
import { NanoUsd } from "../../../src/domain/Money.ts"
import { bearer, call, chat, talk } from "../../harness/client/HttpCalls.ts"
import * as Served from "../../harness/gateway/ServedGateway.ts"
import { assert, describe, withLayer } from "../../harness/It.ts"
import { done, event, json, sse } from "../../harness/upstream/FakeUpstream.ts"
import { chunk, completion, gateway, onFirst, prices, Upstreams } from "../../harness/upstream/Upstreams.ts"

const served = gateway({
  usd: { routes: [{ ...onFirst, options: { stated_cost: "usage.cost" }, cost: prices }] },
  ticks: { routes: [{ ...onFirst, options: { stated_cost: "usage.cost_in_usd_ticks" } }] },
  silent: { routes: [{ ...onFirst, cost: prices }] }
})

const counts = { prompt_tokens: 60, completion_tokens: 5, total_tokens: 65 }

const replying = (stream: boolean, stated: object, ...more: ReadonlyArray<string>) =>
  stream
    ? sse(
        chunk({ content: "fine" }),
        chunk({}, "stop"),
        event({ ...completion(""), choices: [], usage: { ...counts, ...stated } }),
        ...more,
        done
      )
    : json(200, completion("fine", { ...counts, ...stated }))

withLayer(served)("the cost that a provider states", (it) => {
  for (const stream of [false, true]) {
    const chargeOf = Effect.fnUntraced(function* (model: string, stated: object, ...more: ReadonlyArray<string>) {
      yield* (yield* Upstreams).first.script(replying(stream, stated, ...more))
      const { spent, ...customer } = yield* Served.customer()
      const told = stream ? { stream, stream_options: { include_usage: true } } : {}
      const answer = yield* chat(customer, { ...talk(model), ...told })
      assert.strictEqual(answer.status, 200, answer.text)
      const id = answer.headers.get("x-request-id") ?? ""
      const row = yield* Served.logged(id)
      return { answer, customer, id, row, spent: yield* spent }
    })

    describe(stream ? "stream" : "json", () => {
      it.effect("is kept beside the computed one, never charged and never shown to the customer", function* () {
        const silent = yield* chargeOf("silent", { cost: 0.5 })
        assert.deepInclude(silent.row, { statedCost: null, notes: [] })
        const { answer, customer, id, row, spent } = yield* chargeOf("usd", { cost: 0.5 })
        assert.deepInclude(row, { statedCost: NanoUsd(500_000_000n), cost: silent.row.cost, notes: [] })
        assert.strictEqual(spent, silent.spent)
        assert.strictEqual(row.charge, spent)
        const record = yield* call(`/v1/usage/requests/${id}`, { headers: bearer(customer.secret) })
        const sums = yield* call("/v1/usage", { headers: bearer(customer.secret) })
        for (const { text } of [answer, record, sums]) assert.notMatch(text, /cost|stated|0\.5\b/)
      })

      if (stream) {
        it.effect("stays as first stated where counts come again without it", function* () {
          const again = event({ ...completion(""), choices: [], usage: counts })
          const { row } = yield* chargeOf("usd", { cost: 0.5 }, again)
          assert.deepInclude(row, { statedCost: NanoUsd(500_000_000n), notes: [] })
        })
      }

      it.effect("is in ticks where the option names them, at a route without a cost too", function* () {
        const { row } = yield* chargeOf("ticks", { cost_in_usd_ticks: 37_756_000, cost: 9 })
        assert.deepInclude(row, { statedCost: NanoUsd(3_775_600n), cost: null, notes: [] })
      })

      it.effect("is dropped where it is absurd, with a note", function* () {
        for (const cost of [-1, "0.5", 1e300, { usd: 1 }]) {
          const { row } = yield* chargeOf("usd", { cost })
          assert.deepInclude(row, { statedCost: null, notes: ["stated_cost_dropped"] }, JSON.stringify(cost))
        }
      })
    })
  }
})
