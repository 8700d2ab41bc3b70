import { Effect, Layer } from "effect"
import type { ChatRequest } from "../../../src/domain/Chat.ts"
import type { Route } from "../../../src/domain/Model.ts"
import { NanoUsd } from "../../../src/domain/Money.ts"
import { ChatCompletions } from "../../../src/services/chat/ChatCompletions.ts"
import type { ChatSink } from "../../../src/services/chat/ChatStream.ts"
import { Ledger } from "../../../src/services/ledger/Ledger.ts"
import { ReferenceImages } from "../../../src/services/media/ReferenceImages.ts"
import { Providers } from "../../../src/services/routing/Provider.ts"
import { ProviderRouter } from "../../../src/services/routing/ProviderRouter.ts"
import { ClientDeparture } from "../../../src/services/runtime/Deadlines.ts"
import { FetcherFake } from "../../fakes/FetcherFake.ts"
import * as LedgerFake from "../../fakes/LedgerFake.ts"
import { MediaStoreFake } from "../../fakes/MediaStoreFake.ts"
import { model, ProviderFake } from "../../fakes/ProviderFake.ts"
import * as TokensFake from "../../fakes/TokensFake.ts"
import { assert } from "../../harness/It.ts"
import { openChat } from "./ChatBench.ts"

/** The URLs of a request's pictures, in order. */
export const urlsIn = ({ messages }: ChatRequest) =>
  messages.flatMap(({ content }) =>
    typeof content === "string" || content === null
      ? []
      : content.flatMap((part) => (part.type === "image_url" ? [part.image_url.url] : []))
  )

/** Chats over a scripted provider and a scripted web; a route with the option `inline` wants its pictures inlined. */
export const world = (provider = new ProviderFake(), fetcher = new FetcherFake(), store = new MediaStoreFake()) => {
  /** Which pictures each call brought, by route. */
  const brought: Array<readonly [string, ReadonlyArray<string>]> = []
  const requests: Array<ChatRequest> = []
  const noting = (one: Route, asked: ChatRequest) =>
    Effect.sync(() => {
      requests.push(asked)
      brought.push([one.provider.name, urlsIn(asked)])
    })
  const { complete, stream } = provider.chat
  const chat = {
    ...provider.chat,
    requiresInlineImages: ({ options }: Route) => options.inline === true,
    complete: (one: Route, asked: ChatRequest) => Effect.zipRight(noting(one, asked), complete(one, asked)),
    stream: (one: Route, asked: ChatRequest) => Effect.zipRight(noting(one, asked), stream(one, asked))
  }
  const providers = Layer.succeed(Providers, new Map([["fake", { adapter: "fake", chat }]]))
  const run = Effect.provide(
    ChatCompletions.layer.pipe(
      Layer.provide(Layer.provide(ReferenceImages.layer, [fetcher.layer, store.layer])),
      Layer.provide(Layer.provide(ProviderRouter.layer(), providers)),
      Layer.provideMerge(Layer.mergeAll(LedgerFake.layer, TokensFake.layer))
    )
  )
  return { brought, fetcher, requests, run }
}

/** One job on an account of its own, as JSON and as a stream. */
export const bench = Effect.fnUntraced(function* (
  routes: ReadonlyArray<Route>,
  asked: ChatRequest,
  credits = 1_000_000n
) {
  const chat = yield* ChatCompletions
  const ledger = yield* Ledger
  const { books, org, record } = yield* openChat(credits)
  const plain = model(...routes)
  const job = {
    model: { ...plain, pricing: { ...plain.pricing, prompt: NanoUsd(1_000_000n) } },
    request: asked,
    record
  }
  const departure = new ClientDeparture()
  const ended: Array<string> = []
  const sink: ChatSink = {
    departure,
    disconnectStalled: () => false,
    open: Effect.sync(() => void ended.push("open")),
    isOpen: Effect.sync(() => ended.length > 0),
    write: () => Effect.void,
    finish: () => Effect.sync(() => void ended.push("finish")),
    fail: ({ _tag }) => Effect.sync(() => void ended.push(_tag))
  }
  const free = Effect.gen(function* () {
    assert.strictEqual(yield* books.openHolds(org), 0)
    assert.strictEqual((yield* ledger.balance(org)).balance, credits)
  })
  return {
    departure,
    ended,
    free,
    complete: chat.complete(job),
    stream: chat.stream(job, sink)
  }
})
