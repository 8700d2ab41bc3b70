import type Anthropic from "@anthropic-ai/sdk"
import { Context, Effect, Layer } from "effect"
import type OpenAI from "openai"
import type { Answer } from "../contracts/ChatHarness.ts"
import { bodyWantsStream } from "../contracts/ChatHosts.ts"
import { customer as messagesCustomer } from "../harness/client/MessagesClient.ts"
import { calling } from "../harness/client/OfficialClients.ts"
import * as Served from "../harness/gateway/ServedGateway.ts"
import { assert, withLayer } from "../harness/It.ts"
import { dialects } from "../harness/upstream/Dialects.ts"
import * as Fake from "../harness/upstream/FakeUpstream.ts"
import { PromptCache, wordsIn } from "../providers/anthropic/PromptCache.ts"
import { wire } from "../providers/anthropic/Wire.ts"
import { strict } from "./DialectRules.ts"

/** Claude Sonnet 4.6, in nano-USD a token. */
const price = { prompt: 3_000n, completion: 15_000n, cached: 300n, write: 3_750n, writeForAnHour: 6_000n }
const pricing = {
  prompt_per_1m_usd: 3,
  completion_per_1m_usd: 15,
  cached_prompt_per_1m_usd: 0.3,
  cache_write_per_1m_usd: 3.75,
  cache_write_1h_per_1m_usd: 6
}
const leastTokens = 1_024

const words = (count: number, of: string): string => Array.from({ length: count }, (_, at) => `${of}${at}`).join(" ")

/** What the agent's vendor says in each turn: several calls at times, once more than a mark looks back over. */
const callsIn = (turn: number): number => (turn === 12 ? 14 : turn % 5 === 0 ? 3 : 1)
const turns = 30

const answerOf = (turn: number): Answer => ({
  content: words(20, "thought"),
  finish: turn === turns ? "stop" : "tool_calls",
  ...(turn < turns && {
    toolCalls: Array.from({ length: callsIn(turn) }, (_, at) => ({
      id: `toolu_${turn}_${at}`,
      name: "read_file",
      arguments: JSON.stringify({ path: `src/file_${turn}_${at}.ts` })
    }))
  })
})

type Message = OpenAI.ChatCompletionMessageParam

const system: Message = { role: "system", content: words(1_500, "rule") }
const question: Message = { role: "user", content: words(60, "wish") }
const tools: ReadonlyArray<OpenAI.ChatCompletionFunctionTool> = ["read_file", "write_file", "run"].map((name) => ({
  type: "function",
  function: {
    name,
    description: words(400, name),
    parameters: { type: "object", properties: { path: { type: "string" } } }
  }
}))
const nativeTools = tools.map(({ function: { description = "", name } }) => ({
  name,
  description,
  input_schema: { type: "object" as const, properties: { path: { type: "string" } } }
}))
/** Some 5 kB. */
const resultOf = (id: string) => ({ role: "tool", tool_call_id: id, content: words(600, "line") }) as const

/** The model reads the path out of the arguments' JSON: one word, like an id or a name. */
const wordsOfCall = 3
const sizeOf = (message: Message): number => {
  if (message.role === "tool") return 1 + wordsIn(message.content)
  const calls = message.role === "assistant" ? (message.tool_calls ?? []) : []
  return wordsIn(message.content) + wordsOfCall * calls.length
}
const toolsSize = tools.reduce((sum, tool) => sum + 1 + wordsIn(tool.function.description), 0)
const promptSize = (messages: ReadonlyArray<Message>): number =>
  messages.reduce((sum, message) => sum + sizeOf(message), toolsSize)

class Vendor extends Context.Tag("test/Vendor")<Vendor, { readonly fake: Fake.FakeUpstream }>() {}

/** A host that keeps prompts as its vendor does, and refuses what it refuses. */
const replyWith = (cache: PromptCache, answer: Answer): Fake.Reply => {
  const dialect = dialects.find(({ name }) => name === "anthropic") ?? assert.fail("no such dialect")
  return strict(dialect, (response, received) => {
    const counted = cache.take(received.body)
    if (typeof counted === "string") {
      const error = { type: "invalid_request_error", message: counted }
      return Fake.json(400, { type: "error", error })(response, received)
    }
    const completion = wordsIn(answer.content) + wordsOfCall * (answer.toolCalls ?? []).length
    const usage = { ...counted, completion, reasoning: 0 }
    const { body, end, opening, output } = wire({ ...answer, usage })
    const reply = bodyWantsStream(received) ? Fake.sse(...opening, ...output, ...end) : Fake.json(200, body)
    return reply(response, received)
  })
}

const gateway = Served.layer(
  Effect.map(Vendor, ({ fake }) => ({
    catalog: JSON.stringify({
      providers: { claude: { adapter: "anthropic", base_url: fake.url, credential: "CLAUDE_KEY" } },
      families: { C: { sampling: false, reasoning: "none", capabilities: ["tools"] } },
      models: [
        ["cached", { cache: "auto" }],
        ["uncached", {}]
      ].map(([id, options]) => ({
        id,
        surface: "chat",
        family: "C",
        context_length: 1_000_000,
        max_output: 8_192,
        pricing,
        created: "2026-01-01",
        routes: [{ provider: "claude", model: "claude-sonnet-4-6", options }]
      }))
    }),
    env: { CLAUDE_KEY: "sk-claude" }
  }))
).pipe(
  Layer.provideMerge(
    Layer.scoped(
      Vendor,
      Effect.map(Fake.make, (fake) => ({ fake }))
    )
  )
)

interface Turn {
  readonly prompt: number
  readonly usage: OpenAI.CompletionUsage
  readonly charge: bigint
}

/** An agent's work: each turn sends all that was said so far, a minute or more after the last one. */
const converse = Effect.fnUntraced(function* (model: string, { stream }: { readonly stream: boolean }) {
  const { fake } = yield* Vendor
  const { openai, spent } = yield* Served.customer()
  const cache = new PromptCache(leastTokens)
  const messages: Array<Message> = [system, question]
  const done: Array<Turn> = []
  for (let turn = 1; turn <= turns; turn++) {
    yield* fake.script(replyWith(cache, answerOf(turn)))
    const body = { model, messages, tools: [...tools] }
    const before = yield* spent
    const answer = yield* calling(() =>
      stream
        ? openai.chat.completions.stream({ ...body, stream_options: { include_usage: true } }).finalChatCompletion()
        : openai.chat.completions.create(body)
    )
    const [choice] = answer.choices
    if (choice === undefined || answer.usage === undefined) return assert.fail("an answer without a choice or usage")
    done.push({ prompt: promptSize(messages), usage: answer.usage, charge: (yield* spent) - before })
    const { content, tool_calls = [] } = choice.message
    messages.push({ role: "assistant", content, ...(tool_calls.length > 0 && { tool_calls }) })
    messages.push(...tool_calls.map(({ id }) => resultOf(id)))
    cache.pass(turn % 3 === 0 ? 4 : 1)
  }
  return done
})

const totalOf = (all: ReadonlyArray<Turn>): number => Number(all.reduce((sum, { charge }) => sum + charge, 0n))

const completionOf = (turn: number): number => 20 + wordsOfCall * (turn === turns ? 0 : callsIn(turn))

withLayer(gateway)("a conversation whose prompts are cached", (it) => {
  it.effect.each([{ stream: false }, { stream: true }])(
    "of an agent's 30 turns costs a quarter of what it costs without a cache, %j",
    function* (how) {
      const cached = yield* converse("cached", how)
      const uncached = yield* converse("uncached", how)
      assert.strictEqual(cached.length, turns)
      cached.forEach(({ charge, prompt, usage }, at) => {
        const completion = completionOf(at + 1)
        const read = cached[at - 1]?.prompt ?? 0
        const written = prompt - read
        assert.deepInclude(usage, { prompt_tokens: prompt, completion_tokens: completion })
        assert.deepInclude(usage.prompt_tokens_details, { cached_tokens: read, cache_write_tokens: written })
        const byHand =
          BigInt(read) * price.cached + BigInt(written) * price.write + BigInt(completion) * price.completion
        assert.strictEqual(charge, byHand, `turn ${at + 1}`)
      })
      uncached.forEach(({ charge, prompt }, at) => {
        const byHand = BigInt(prompt) * price.prompt + BigInt(completionOf(at + 1)) * price.completion
        assert.strictEqual(charge, byHand, `turn ${at + 1}`)
      })
      const share = totalOf(cached) / totalOf(uncached)
      console.log(`${totalOf(cached) / 1e9} USD of ${totalOf(uncached) / 1e9} USD: ${share.toFixed(3)}`)
      assert.isAtMost(share, 0.25)
    }
  )

  it.effect("with marks of the client's own pays for what each writes, and for what a pause forgets", function* () {
    const { fake } = yield* Vendor
    const { openai, spent } = yield* Served.customer()
    const cache = new PromptCache(leastTokens)
    const mark = { cache_control: { type: "ephemeral", ttl: "5m" } }
    const hour = { cache_control: { type: "ephemeral", ttl: "1h" } }
    const messages = [
      { ...system, ...hour },
      { ...question, ...mark }
    ]
    const ask = Effect.fnUntraced(function* () {
      yield* fake.script(replyWith(cache, { content: words(20, "thought"), finish: "stop" }))
      const before = yield* spent
      const { usage } = yield* calling(() => openai.chat.completions.create({ model: "uncached", messages }))
      return { details: usage?.prompt_tokens_details, charge: (yield* spent) - before }
    })
    const [kept, forgotten] = [sizeOf(system), sizeOf(question)].map(BigInt)
    const output = 20n * price.completion
    if (kept === undefined || forgotten === undefined) return assert.fail("no sizes")

    const first = yield* ask()
    assert.strictEqual(first.charge, kept * price.writeForAnHour + forgotten * price.write + output)
    assert.deepInclude(Object(first.details), {
      cached_tokens: 0,
      cache_write_tokens: Number(kept + forgotten),
      cache_write_1h_tokens: Number(kept)
    })
    cache.pass(6)
    const afterPause = yield* ask()
    assert.strictEqual(afterPause.charge, kept * price.cached + forgotten * price.write + output)
    cache.pass(4)
    const soon = yield* ask()
    assert.strictEqual(soon.charge, (kept + forgotten) * price.cached + output)
    cache.pass(61)
    const nextDay = yield* ask()
    assert.strictEqual(nextDay.charge, first.charge)
  })

  it.effect.each([{ model: "cached" }, { model: "uncached" }])(
    "in the vendor's own words is cached alike: $model",
    function* ({ model }) {
      const { fake } = yield* Vendor
      const { anthropic, spent } = yield* messagesCustomer()
      const cache = new PromptCache(leastTokens)
      const messages: Array<Anthropic.MessageParam> = [{ role: "user", content: words(60, "wish") }]
      let prompt = promptSize([system, question])
      let before = 0
      for (const turn of [1, 2, 3]) {
        yield* fake.script(replyWith(cache, answerOf(turn)))
        const spentBefore = yield* spent
        const { content, usage } = yield* calling(() =>
          anthropic.messages.create({
            model,
            max_tokens: 4_096,
            system: words(1_500, "rule"),
            tools: nativeTools,
            messages
          })
        )
        const isCached = model === "cached"
        const [read, written, plain] = isCached ? [before, prompt - before, 0] : [0, 0, prompt]
        assert.deepInclude(Object(usage), {
          input_tokens: plain,
          cache_read_input_tokens: read,
          cache_creation_input_tokens: written
        })
        const completion = BigInt(completionOf(turn)) * price.completion
        const input = BigInt(read) * price.cached + BigInt(written) * price.write + BigInt(plain) * price.prompt
        assert.strictEqual((yield* spent) - spentBefore, input + completion, `turn ${turn}`)
        const calls = content.flatMap((block) => (block.type === "tool_use" ? [block.id] : []))
        messages.push({ role: "assistant", content })
        messages.push({
          role: "user",
          content: calls.map((tool_use_id) => ({ type: "tool_result", tool_use_id, content: words(600, "line") }))
        })
        before = prompt
        prompt += completionOf(turn) + calls.length * sizeOf(resultOf("call"))
      }
    }
  )
})
