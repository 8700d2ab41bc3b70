import { Effect, Layer } from "effect"
import type { ChatRequest } from "../../../src/domain/Chat.ts"
import type { Capability, Route } from "../../../src/domain/Model.ts"
import { AttemptHistory } from "../../../src/services/routing/Attempt.ts"
import { Providers } from "../../../src/services/routing/Provider.ts"
import { ProviderRouter } from "../../../src/services/routing/ProviderRouter.ts"
import { acme, model, ProviderFake, request, route } from "../../fakes/ProviderFake.ts"
import { assert, describe, it } from "../../harness/It.ts"

const able = (provider: string, ...capabilities: ReadonlyArray<Capability>): Route =>
  route(provider, { capabilities: new Set(capabilities) })

/** Takes tools, and searches, but not both at once. */
const picky = (provider: string) => route(provider, { options: { picky: true } })

const tool = { type: "function", function: { name: "f" } } as const
const tools: Partial<ChatRequest> = { tools: [tool] }
const search: Partial<ChatRequest> = { webSearch: true }
const json: Partial<ChatRequest> = { responseFormat: { type: "json_object" } }

/** The route that is asked, or the field for which none is, whatever the way it is asked for. */
const chosen = (asked: Partial<ChatRequest>, ...routes: ReadonlyArray<Route>) => {
  const fake = new ProviderFake()
  const findUnsupportedField = ({ options }: Route, { tools, webSearch }: ChatRequest) =>
    options.picky === true && tools.length > 0 && webSearch ? "web_search" : undefined
  const provider = { adapter: "fake", chat: { ...fake.chat, findUnsupportedField } }
  return Effect.gen(function* () {
    const router = yield* ProviderRouter
    yield* router.admit(model(...routes), request(asked))
    yield* router.complete(model(...routes), request(asked), new AttemptHistory(acme))
    yield* Effect.scoped(router.stream(model(...routes), request(asked), new AttemptHistory(acme)))
    return [...new Set(fake.calls)].join()
  }).pipe(
    Effect.catchTag("InvalidRequest", ({ message, param }) => Effect.succeed(`${param}: ${message}`)),
    Effect.provide(Layer.provide(ProviderRouter.layer(), Layer.succeed(Providers, new Map([["fake", provider]]))))
  )
}

const documents = {
  dialect: "messages",
  body: {},
  headers: {},
  extraTokens: 0,
  nativeOnly: { param: "messages", what: "Document input" }
} as const
const none = "No provider of `m` supports all features of the request together."

describe("the routes of a request", () => {
  const rows: ReadonlyArray<readonly [string, Partial<ChatRequest>, ReadonlyArray<Route>, string]> = [
    ["include one that declines nothing of it", tools, [picky("a"), route("b")], "m@a"],
    ["include the next one where the first declines", { ...tools, ...search }, [picky("a"), route("b")], "m@b"],
    ["are none where all decline", { ...tools, ...search }, [picky("a"), picky("b")], `web_search: ${none}`],
    [
      "are none, with the first unsupported field named, where each can do a part",
      { ...tools, ...json, ...search },
      [able("a", "tools", "response_format"), able("b", "web_search")],
      `web_search: ${none}`
    ],
    [
      "are none, with the field that none can serve named, whatever else is asked",
      { ...tools, ...search, native: documents },
      [picky("a"), route("b")],
      "messages: Document input is not available for `m`."
    ],
    [
      "are none, with the fields checked in their order",
      { ...tools, ...json },
      [able("a", "tools"), able("b", "response_format")],
      `response_format: ${none}`
    ],
    [
      "include the one that can do all",
      { ...tools, ...json },
      [able("a", "tools"), able("b", "response_format"), able("c", "tools", "response_format")],
      "m@c"
    ]
  ]
  for (const [name, asked, routes, expected] of rows) {
    it.effect(name, () => Effect.map(chosen(asked, ...routes), (outcome) => assert.strictEqual(outcome, expected)))
  }

  it.each([
    ["a route that can search and reason", able("a", "tools", "web_search", "reasoning"), true, "low"],
    ["a route of which nothing is narrowed", route("a"), true, "low"],
    ["a route that can do neither", able("a", "tools"), false, undefined],
    ["a route that cannot search beside tools", picky("a"), false, "low"]
  ] as const)("of hints %s gets what it can do", async (_, able, webSearch, reasoningEffort) => {
    const hints = { ...tools, ...search, isWebSearchHint: true, reasoningEffort: "low", isEffortHint: true } as const
    const received: Array<ChatRequest> = []
    const { chat } = new ProviderFake()
    const findUnsupportedField = ({ options }: Route, { webSearch }: ChatRequest) =>
      options.picky === true && webSearch ? "web_search" : undefined
    const complete: typeof chat.complete = (to, asked) => {
      received.push(asked)
      return chat.complete(to, asked)
    }
    const provider = { adapter: "fake", chat: { ...chat, complete, findUnsupportedField } }
    await Effect.runPromise(
      Effect.flatMap(ProviderRouter, (router) =>
        router.complete(model(able), request(hints), new AttemptHistory(acme))
      ).pipe(
        Effect.provide(Layer.provide(ProviderRouter.layer(), Layer.succeed(Providers, new Map([["fake", provider]]))))
      )
    )
    assert.deepStrictEqual(
      received.map((one) => [one.webSearch, one.reasoningEffort]),
      [[webSearch, reasoningEffort]]
    )
  })
})
