import type { Usage } from "../../src/domain/Chat.ts"
import { post, talk } from "../harness/client/HttpCalls.ts"
import { price } from "../harness/fixtures/ChatCatalog.ts"
import * as Served from "../harness/gateway/ServedGateway.ts"
import { assert, withLayer } from "../harness/It.ts"
import { answers, DialectHosts, dialects, gateway, routeTo } from "../harness/upstream/Dialects.ts"

const surfaces = [
  { path: "/v1/messages", name: "anthropic", body: { ...talk("anthropic"), max_tokens: 50 } },
  {
    path: "/v1/responses",
    name: "openai-responses",
    body: { model: "openai-responses", input: "hi", max_output_tokens: 50 }
  }
]
const natives = dialects.filter(({ name }) => surfaces.some((surface) => surface.name === name))

const counts = (prompt: number, completion: number): Usage => {
  return { prompt, completion, cached: 0, cacheWrite: 0, reasoning: 0 }
}
const reports: ReadonlyArray<readonly [what: string, usage: Usage | undefined, notes: ReadonlyArray<string>]> = [
  ["none", undefined, ["usage_estimated"]],
  ["what it is", counts(12, 9), []],
  ["more output than the cap", counts(12, 900), []],
  ["more than can be", counts(1e300, 1e300), ["usage_bounded", "hold_exceeded"]]
]

withLayer(gateway(Object.fromEntries(natives.map((dialect) => [dialect.name, [routeTo(dialect)]]))))(
  "a host's own answer",
  (it) => {
    for (const { body, name, path } of surfaces) {
      for (const stream of [false, true]) {
        it.effect.each(reports)(
          `shows the counts that are billed where it reports %s (${path}, stream: ${stream})`,
          function* ([, usage, notes]) {
            const dialect = natives.find((native) => native.name === name) ?? assert.fail(name)
            const host = (yield* DialectHosts).of(dialect)
            const customer = yield* Served.customer()
            yield* host.script(answers(dialect, { content: "Hello, you.", finish: "stop", ...(usage && { usage }) }))
            const answer = yield* post(path)(customer, { ...body, stream })
            assert.strictEqual(answer.status, 200, answer.text)
            const row = yield* Served.logged(answer.headers.get("x-request-id"))
            assert.deepStrictEqual(row.notes, notes)
            const { charge, completionTokens, promptTokens } = row
            const told = answer.text.slice(answer.text.lastIndexOf('"usage":'))
            assert.include(told, `"input_tokens":${promptTokens}`)
            assert.include(told, `"output_tokens":${completionTokens}`)
            assert.isAtMost(completionTokens ?? Infinity, 50)
            const cost = BigInt(promptTokens ?? 0) * price.prompt + BigInt(completionTokens ?? 0) * price.completion
            if (!notes.includes("hold_exceeded")) assert.strictEqual(charge, cost)
          }
        )
      }
    }
  }
)
