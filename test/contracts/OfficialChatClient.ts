import { calling, thrownBy } from "../harness/client/OfficialClients.ts"
import { assert, describe, it } from "../harness/It.ts"
import * as Fake from "../harness/upstream/FakeUpstream.ts"
import { type Answer, type Refusal, refusals } from "./ChatHarness.ts"
import { type ChatWire, hostOver } from "./ChatHosts.ts"

const samplesOf = (cacheWrite: number): Readonly<Record<string, Answer>> => ({
  "text with reasoning": {
    content: "Grüße 👋 aus Zürich",
    reasoning: "Let me see.",
    finish: "stop",
    usage: { prompt: 21, completion: 13, cached: 8, cacheWrite, reasoning: 5 }
  },
  "text and two calls": {
    content: "Let me look.",
    toolCalls: [
      { id: "call_a", name: "get_weather", arguments: '{"city":"Bern"}' },
      { id: "call_b", name: "now", arguments: "{}" }
    ],
    finish: "tool_calls"
  },
  "text cut by its limit": { content: "One two", finish: "length" }
})

const withheld = { "an answer withheld from the start": { content: "", finish: "content_filter" } } as const

/** A vendor's own client: what it reads of a host, and what it throws for a refusal. */
export interface OfficialClient {
  readonly readers: Readonly<Record<string, (url: string) => Promise<Answer>>>
  readonly assertRefusal: (thrown: unknown, refusal: Refusal) => void
}

/** The fake hosts of the contracts are read by the vendor's own client: only then do they count. */
export const officialClientContract = (wire: ChatWire, { assertRefusal, readers }: OfficialClient) =>
  describe(`our fake of ${wire.adapter}, read by the vendor's own client`, () => {
    const samples = { ...samplesOf(wire.has.cacheWrites ? 2 : 0), ...(wire.has.withholding ? withheld : undefined) }
    for (const [name, answer] of Object.entries<Answer>(samples)) {
      for (const [way, read] of Object.entries(readers)) {
        it.scopedLive(`${name} is the same ${way}`, function* () {
          const fake = yield* Fake.make
          yield* hostOver(wire, fake).answer(answer)
          const { content = "", reasoning, toolCalls = [], ...rest } = yield* calling(() => read(fake.url))
          const expected = { reasoning: answer.reasoning, toolCalls: answer.toolCalls ?? [], usage: answer.usage }
          assert.deepStrictEqual(
            { usage: undefined, ...rest, content, reasoning, toolCalls },
            { ...expected, content: answer.content ?? "", finish: answer.finish }
          )
        })
      }
    }

    const [whole] = Object.values(readers)
    for (const refusal of refusals.filter((one) => wire.refuse(one).status >= 400)) {
      it.scopedLive(`its error for ${refusal} is the vendor's`, function* () {
        const fake = yield* Fake.make
        yield* hostOver(wire, fake).fail(refusal)
        assertRefusal(yield* thrownBy(async () => whole?.(fake.url)), refusal)
      })
    }
  })
