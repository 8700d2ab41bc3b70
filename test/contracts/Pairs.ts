import { Context, Effect, Layer } from "effect"
import type { Feature } from "../../src/domain/Model.ts"
import { type Customer, customer } from "../harness/client/MessagesClient.ts"
import { calling } from "../harness/client/OfficialClients.ts"
import { price } from "../harness/fixtures/ChatCatalog.ts"
import { assert } from "../harness/It.ts"
import {
  type Dialect,
  DialectHosts,
  dialectOf,
  gateway,
  type Outage,
  outages,
  routeTo
} from "../harness/upstream/Dialects.ts"
import type { Received, Reply } from "../harness/upstream/FakeUpstream.ts"
import { chatWires } from "../providers/ChatWires.ts"
import type { Answer, Turn, Understood } from "./ChatHarness.ts"
import { type ChatWire, hostOver } from "./ChatHosts.ts"
import { chat } from "./inbound/Chat.ts"
import type { Asked, Inbound } from "./inbound/Inbound.ts"
import { messages } from "./inbound/Messages.ts"
import { responses } from "./inbound/Responses.ts"

export const inbounds = [chat, responses, messages]

interface Failover {
  readonly outage: Outage
  readonly model: string
}

/** Those that hosts of every wire know, the last of them after a good status. */
const falls = outages.filter(({ what }) => /answers 503|before it has said|in its first events/.test(what))

/** A dialect of clients over a wire of hosts. */
export interface Pair {
  readonly inbound: Inbound
  readonly wire: ChatWire
  readonly dialect: Dialect
  /** Of whom the second route of the pair's other model is. */
  readonly next: ChatWire
  readonly from: string
  readonly over: string
  /** Answered by one host; those of `failovers` by the next where it fails, each its own since failures close a route. */
  readonly model: string
  readonly failovers: ReadonlyArray<Failover>
}

export const pairs: ReadonlyArray<Pair> = inbounds.flatMap((inbound) =>
  chatWires.map((wire, at) => {
    const model = `${inbound.name}-${wire.adapter}`
    return {
      inbound,
      wire,
      dialect: dialectOf(wire),
      next: chatWires[(at + 1) % chatWires.length] ?? wire,
      from: inbound.name,
      over: wire.adapter,
      model,
      failovers: falls.map((outage, index) => ({ outage, model: `${model}-${index}` }))
    }
  })
)

export const pairsWith = (feature: Feature) => pairs.filter(({ wire }) => wire.has.features.includes(feature))

export const isNative = ({ inbound, wire }: Pair): boolean => inbound.native === wire.adapter

/** One for all tests of a file. */
export class Payer extends Context.Tag("test/Payer")<Payer, Customer>() {}

const gatewayOfPairs = gateway(
  Object.fromEntries(
    pairs.flatMap(({ dialect, failovers, model, next }) => [
      [model, [routeTo(dialect)]] as const,
      ...failovers.map((one) => [one.model, [routeTo(dialect), routeTo(dialectOf(next), { preference: 2 })]] as const)
    ])
  ),
  { FETCH_ALLOW: "127.0.0.1" },
  chatWires.map(dialectOf)
)
export const served = Layer.effect(Payer, customer()).pipe(Layer.provideMerge(gatewayOfPairs))

/** The pair's host, and what it understood of the last request. */
export const hostOf = ({ dialect, wire }: Pair) =>
  Effect.map(DialectHosts, ({ of }) => {
    const fake = of(dialect)
    const seen: Array<Received> = []
    const keep =
      (reply: Reply): Reply =>
      (response, received) => {
        seen.push(received)
        return reply(response, received)
      }
    const { answer, fail } = hostOver(wire, { ...fake, script: (...replies) => fake.script(...replies.map(keep)) })
    const understood = () => wire.understand(seen.at(-1) ?? assert.fail("the host was not asked"))
    const answerWhole = ({ content, reasoning, toolCalls, ...rest }: WholeAnswer) =>
      answer({
        ...rest,
        content: content === "" ? undefined : content,
        reasoning: reasoning === "" ? undefined : reasoning,
        ...(toolCalls.length > 0 && { toolCalls })
      })
    return { answer: answerWhole, fail, script: fake.script, understood }
  })

/** In which nothing is left out. */
export type WholeAnswer = Required<Answer>

export const answerOf = ({ wire: { has } }: Pair, given: Partial<Answer>): WholeAnswer => ({
  content: "",
  reasoning: "",
  toolCalls: [],
  finish: "stop",
  usage: {
    prompt: 40,
    completion: 9,
    cached: has.cached ? 8 : 0,
    cacheWrite: has.cacheWrites ? 4 : 0,
    reasoning: has.features.includes("reasoning") ? 2 : 0
  },
  ...given
})

export const chargeOf = ({ usage }: Answer): bigint =>
  BigInt(usage?.prompt ?? 0) * price.prompt + BigInt(usage?.completion ?? 0) * price.completion

export interface Step {
  readonly turns: ReadonlyArray<Turn>
  /** What the host answers. */
  readonly answer: Partial<Answer>
  /** What the client gets, where that is something else. */
  readonly cut?: Partial<Answer>
}

const converse = Effect.fnUntraced(function* (
  pair: Pair,
  { stream, ...given }: Partial<Asked> & { readonly stream: boolean },
  steps: ReadonlyArray<Step>
) {
  const payer = yield* Payer
  const host = yield* hostOf(pair)
  const { say } = pair.inbound.open(payer, { model: pair.model, ...given }, stream)
  const understood: Array<Understood> = []
  for (const { answer, cut, turns } of steps) {
    const whole = answerOf(pair, answer)
    const before = yield* payer.spent
    yield* host.answer(whole)
    const heard = yield* calling(() => say(...turns))
    if (cut === undefined) {
      assert.deepStrictEqual(heard, whole, stream ? "a stream" : "JSON")
      assert.strictEqual((yield* payer.spent) - before, chargeOf(whole))
    } else assert.deepInclude(heard, cut)
    const sent = host.understood()
    assert.strictEqual(sent.stream, stream)
    understood.push(sent)
  }
  return understood
})

/** A conversation in JSON and in streams, which are the same to the host and to the client; answers what the host understood. */
export const comesOut = Effect.fnUntraced(function* (pair: Pair, given: Partial<Asked>, ...steps: ReadonlyArray<Step>) {
  const whole = yield* converse(pair, { ...given, stream: false }, steps)
  const streamed = yield* converse(pair, { ...given, stream: true }, steps)
  assert.deepStrictEqual(
    streamed,
    whole.map((understood) => ({ ...understood, stream: true }))
  )
  return whole
})
