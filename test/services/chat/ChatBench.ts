import { Deferred, Effect, Layer, Ref } from "effect"
import type { ChatEvent, ChatRequest } from "../../../src/domain/Chat.ts"
import type { ChatModel, Route } from "../../../src/domain/Model.ts"
import { NanoUsd } from "../../../src/domain/Money.ts"
import { ChatCompletions } from "../../../src/services/chat/ChatCompletions.ts"
import type { ChatSink } from "../../../src/services/chat/ChatStream.ts"
import { Ledger } from "../../../src/services/ledger/Ledger.ts"
import { ReferenceImages } from "../../../src/services/media/ReferenceImages.ts"
import { RequestRecord } from "../../../src/services/requests/RequestRecord.ts"
import { ProviderRouter } from "../../../src/services/routing/ProviderRouter.ts"
import { ClientDeparture } from "../../../src/services/runtime/Deadlines.ts"
import { LedgerBench } from "../../contracts/LedgerBench.ts"
import * as LedgerFake from "../../fakes/LedgerFake.ts"
import { model, type ProviderFake, request } from "../../fakes/ProviderFake.ts"
import * as TokensFake from "../../fakes/TokensFake.ts"
import { assert } from "../../harness/It.ts"

interface Line {
  readonly open: number
  readonly events: ReadonlyArray<ChatEvent>
  readonly end: string | undefined
}

/** Where a chat is sent, and what came there. */
export const makeSink = Effect.gen(function* () {
  const line = yield* Ref.make<Line>({ open: 0, events: [], end: undefined })
  const departure = new ClientDeparture()
  const written = yield* Deferred.make<void>()
  const sink: ChatSink = {
    departure,
    disconnectStalled: () => false,
    open: Ref.update(line, (now) => ({ ...now, open: now.open + 1 })),
    isOpen: Effect.map(Ref.get(line), ({ open }) => open > 0),
    write: (events) =>
      Effect.zipRight(
        Ref.update(line, (now) => ({ ...now, events: [...now.events, ...events] })),
        Deferred.succeed(written, undefined)
      ),
    finish: (used) => Ref.update(line, (now) => ({ ...now, end: `done ${used.prompt}+${used.completion}` })),
    fail: (broken) => Ref.update(line, (now) => ({ ...now, end: broken._tag }))
  }
  return { sink, departure, written, line: Ref.get(line) }
})

export const nano = (perToken: bigint) => NanoUsd(perToken * 1_000_000n)

/** A prompt token costs 1 nano-dollar, a completion token 10. */
export const priced = (...routes: ReadonlyArray<Route>): ChatModel => {
  const { pricing, ...rest } = model(...routes)
  return { ...rest, pricing: { ...pricing, prompt: nano(1n), completion: nano(10n) } }
}

/** An account of its own, and the record of a chat that it asks for. */
export const openChat = Effect.fnUntraced(function* (credits: bigint) {
  const books = yield* LedgerBench
  const { key, org } = yield* books.organization(credits)
  const caller = { key, org, scopes: undefined, rpm: undefined }
  const record = new RequestRecord({
    id: "1",
    requestId: "r",
    surface: "chat",
    caller,
    rateLimit: 600,
    at: 0,
    startedAt: 0
  })
  return { books, org, record }
})

/** Chats over these providers and a ledger in memory. */
export const chatsOver = (fake: Pick<ProviderFake, "layer">) =>
  ChatCompletions.layer.pipe(
    // A chat without pictures must not look for any.
    Layer.provide(Layer.mock(ReferenceImages, {})),
    Layer.provideMerge(
      Layer.mergeAll(Layer.provide(ProviderRouter.layer(), fake.layer), LedgerFake.layer, TokensFake.layer)
    )
  )

const credits = 1_000_000n

/** One job on an account of its own, with what it left behind. */
const bench = Effect.gen(function* () {
  const chat = yield* ChatCompletions
  const ledger = yield* Ledger
  const { books, org, record } = yield* openChat(credits)
  const settled = Effect.gen(function* () {
    assert.strictEqual(yield* books.openHolds(org), 0)
    assert.isTrue(yield* books.proved)
    const spent = credits - (yield* ledger.balance(org)).balance
    assert.strictEqual(spent, record.summary.charge)
    return { spent, charges: yield* books.charges(org) }
  })
  const { sink, ...seen } = yield* makeSink
  const complete = (sold: ChatModel, more: Partial<ChatRequest> = {}) =>
    chat.complete({ model: sold, request: request(more), record })
  const stream = (sold: ChatModel, into = sink) =>
    chat.stream({ model: sold, request: request({ stream: true }), record }, into)
  return { complete, stream, ledger, org, record, settled, sink, ...seen }
})

export type Bench = Effect.Effect.Success<typeof bench>

/** Runs the body over a job on an account of its own, with these providers. */
export const running = (fake: ProviderFake, body: (job: Bench) => Effect.fn.Return<unknown, unknown>) =>
  Effect.flatMap(bench, Effect.fnUntraced(body)).pipe(Effect.provide(chatsOver(fake)))
