import { Schema } from "effect"
import { post, talk } from "../harness/client/HttpCalls.ts"
import { price } from "../harness/fixtures/ChatCatalog.ts"
import * as Served from "../harness/gateway/ServedGateway.ts"
import { assert, withLayer } from "../harness/It.ts"
import { answers, DialectHosts, dialects, gateway, routeTo } from "../harness/upstream/Dialects.ts"

const models = Object.fromEntries(dialects.map((dialect) => [dialect.name, [routeTo(dialect)]]))

/** A third of what the catalog's 8,000 tokens of output cost. */
const credits = (8_000n * price.completion) / 3n

const Cap = Schema.Struct({
  max_tokens: Schema.optional(Schema.Number),
  max_output_tokens: Schema.optional(Schema.Number),
  generationConfig: Schema.optional(Schema.Struct({ maxOutputTokens: Schema.Number })),
  thinking: Schema.optional(Schema.Struct({ budget_tokens: Schema.optional(Schema.Number) }))
})

const surfaces = [
  {
    path: "/v1/messages",
    body: (model: string) => ({
      ...talk(model),
      max_tokens: 64_000,
      thinking: { type: "enabled", budget_tokens: 32_000 }
    })
  },
  { path: "/v1/responses", body: (model: string) => ({ model, input: "hi", max_output_tokens: 64_000 }) }
]

withLayer(gateway(models))("a cap that was lowered to the balance", (it) => {
  for (const { body, path } of surfaces) {
    for (const stream of [false, true]) {
      it.effect.each(dialects)(`is what $name hears of a request of ${path} (stream: ${stream})`, function* (dialect) {
        const host = (yield* DialectHosts).of(dialect)
        const customer = yield* Served.customer({ nanoUsd: credits })
        yield* host.script(answers(dialect, { content: "fine", finish: "stop" }))
        const answer = yield* post(path)(customer, { ...body(dialect.name), stream })
        assert.strictEqual(answer.status, 200, answer.text)
        const told = Number(answer.headers.get("x-gateway-max-output-tokens"))
        const received = yield* host.received
        const sent = Schema.decodeUnknownSync(Cap)(received.body)
        assert.strictEqual(sent.max_tokens ?? sent.max_output_tokens ?? sent.generationConfig?.maxOutputTokens, told)
        assert.isAtLeast(told, 1_024)
        assert.isBelow(told, 8_000)
        assert.isBelow(sent.thinking?.budget_tokens ?? 0, told)
        assert.isAtMost(Number(yield* customer.spentInTheEnd), Number(credits) / 2)
      })
    }
  }
})
