import { Effect } from "effect"
import type { ChatCompletionChunk } from "openai/resources/chat/completions"
import type { Answer } from "../contracts/ChatHarness.ts"
import { calling, contentOf, drained } from "../harness/client/OfficialClients.ts"
import { price } from "../harness/fixtures/ChatCatalog.ts"
import * as Served from "../harness/gateway/ServedGateway.ts"
import { assert, withLayer } from "../harness/It.ts"
import {
  answers,
  type Dialect,
  DialectHosts,
  dialects,
  gateway,
  type Outage,
  outages,
  routeTo,
  theirs
} from "../harness/upstream/Dialects.ts"

const others = (first: Dialect) => dialects.filter((one) => one !== first)

/** A model for each fall, since an account at fault closes its route. */
const modelOf = (outage: Outage, first: Dialect, next: Dialect, stream: boolean) =>
  [outages.indexOf(outage), dialects.indexOf(first), dialects.indexOf(next), stream ? "stream" : "json"].join("-")

const models = outages.flatMap((outage) =>
  dialects.flatMap((first) =>
    others(first).flatMap((next) =>
      [true, false].map((stream) => {
        const gone = outage.reply === undefined
        const routes = [routeTo(first, { gone }), routeTo(next, { preference: 2 })]
        return [modelOf(outage, first, next, stream), routes] as const
      })
    )
  )
)

/** Each dialect's usage is another, so that it shows whose is charged. */
const answerOf = (dialect: Dialect): Answer => {
  const more = dialects.indexOf(dialect)
  const usage = { prompt: 20 + more, completion: 9 + more, cached: 0, cacheWrite: 0, reasoning: 2 }
  return { content: "Servus, world.", reasoning: "Let me think.", finish: "stop", usage }
}

const usageOf = (dialect: Dialect) => {
  const { completion = 0, prompt = 0 } = answerOf(dialect).usage ?? {}
  return { prompt_tokens: prompt, completion_tokens: completion, total_tokens: prompt + completion }
}

const chargeOf = (dialect: Dialect) => {
  const { completion_tokens, prompt_tokens } = usageOf(dialect)
  return BigInt(prompt_tokens) * price.prompt + BigInt(completion_tokens) * price.completion
}

type Customer = Served.Customer

/** The official client, and all that it was sent: heads and bodies, as they came. */
const watched = ({ openai }: Customer) => {
  const seen: Array<string> = []
  const client = openai.withOptions({
    fetch: async (url, init) => {
      const response = await fetch(url, init)
      const copy = response.clone()
      seen.push(JSON.stringify([...response.headers]), await copy.text())
      return response
    }
  })
  const clean = (title: string) => {
    for (const word of theirs) assert.notInclude(seen.join("\n"), word, title)
  }
  return { client, clean }
}

const reasoningOf = (chunks: ReadonlyArray<ChatCompletionChunk>) =>
  chunks
    .map(({ choices }) => {
      const delta: Readonly<Record<string, unknown>> = { ...choices[0]?.delta }
      return typeof delta.reasoning_content === "string" ? delta.reasoning_content : ""
    })
    .join("")

const asked = (model: string) => ({ model, messages: [{ role: "user" as const, content: "hi" }] })

/** One answer in one piece, and nothing in it of who failed before. */
const seamlessJson = Effect.fnUntraced(function* (customer: Customer, model: string, next: Dialect, title: string) {
  const { clean, client } = watched(customer)
  const { data, response } = yield* calling(() => client.chat.completions.create(asked(model)).withResponse())
  assert.match(data.id, /^chatcmpl-[0-9a-f]{32}$/, title)
  assert.strictEqual(data.model, model, title)
  assert.lengthOf(data.choices, 1, title)
  const [choice] = data.choices
  assert.strictEqual(choice?.finish_reason, "stop", title)
  const said = { role: "assistant" as const, content: "Servus, world.", reasoning_content: "Let me think." }
  assert.deepInclude(choice?.message, said, title)
  assert.deepInclude(data.usage, usageOf(next), title)
  clean(title)
  return response
})

/** One stream: an id, a name and a role, one finish, the usage last. */
const seamlessStream = Effect.fnUntraced(function* (customer: Customer, model: string, next: Dialect, title: string) {
  const { clean, client } = watched(customer)
  const body = { ...asked(model), stream: true as const, stream_options: { include_usage: true } }
  const { data, response } = yield* calling(() => client.chat.completions.create(body).withResponse())
  const { error, items } = yield* drained(data)
  assert.isUndefined(error, title)
  assert.lengthOf(new Set(items.map(({ id }) => id)), 1, title)
  assert.match(items[0]?.id ?? "", /^chatcmpl-[0-9a-f]{32}$/, title)
  for (const chunk of items) assert.strictEqual(chunk.model, model, title)
  const choices = items.flatMap((chunk) => chunk.choices)
  assert.deepStrictEqual(
    choices.flatMap(({ delta }) => delta.role ?? []),
    ["assistant"],
    title
  )
  assert.strictEqual(choices[0]?.delta.role, "assistant", title)
  assert.deepStrictEqual(
    choices.flatMap(({ finish_reason }) => finish_reason ?? []),
    ["stop"],
    title
  )
  assert.deepStrictEqual([contentOf(items), reasoningOf(items)], ["Servus, world.", "Let me think."], title)
  const told = items.flatMap(({ usage }) => usage ?? [])
  assert.lengthOf(told, 1, title)
  assert.deepInclude(items.at(-1)?.usage, usageOf(next), title)
  clean(title)
  return response
})

withLayer(gateway(Object.fromEntries(models)))("the official client gets one seamless answer", (it) => {
  const cases = dialects.flatMap((first) => outages.map((outage) => ({ first, outage, title: first.name })))

  it.effect.each(cases)("where a host of $title $outage.what, in any other dialect", function* ({ first, outage }) {
    const hosts = yield* DialectHosts
    const customer = yield* Served.customer()
    let spent = 0n
    for (const next of others(first)) {
      for (const stream of [false, true]) {
        const model = modelOf(outage, first, next, stream)
        const title = `${next.name} takes over${stream ? " a stream" : ""}`
        if (outage.reply !== undefined) yield* hosts.of(first).script(outage.reply(first))
        yield* hosts.of(next).script(answers(next, answerOf(next)))
        const response = yield* (stream ? seamlessStream : seamlessJson)(customer, model, next, title)
        spent += chargeOf(next)
        assert.strictEqual(yield* customer.spent, spent, title)
        const row = yield* Served.logged(response.headers.get("x-request-id"))
        assert.deepStrictEqual(
          row.attempts.map(({ outcome, provider }) => [provider.replace("-gone", ""), outcome]),
          [
            [routeTo(first).provider, outage.outcome],
            [routeTo(next).provider, "ok"]
          ],
          title
        )
        assert.deepStrictEqual(
          [row.route, row.charge, row.promptTokens, row.completionTokens, row.notes],
          [
            `${model}@${routeTo(next).provider}`,
            chargeOf(next),
            usageOf(next).prompt_tokens,
            usageOf(next).completion_tokens,
            []
          ],
          title
        )
      }
    }
  })
})
