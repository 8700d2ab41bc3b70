/** `layer` runs a gateway with mock providers from the package aimock. */

import type { LLMock } from "@copilotkit/aimock"
import { Context, Effect, Layer } from "effect"
import { NanoUsd } from "../../../src/domain/Money.ts"
import { makeMock } from "../../contracts/ChatHosts.ts"
import { type CatalogRoute, chatCatalog, price } from "../fixtures/ChatCatalog.ts"
import * as Served from "../gateway/ServedGateway.ts"

/** The mock providers: two accept the catalog's credential, and one rejects it. */
export class Mocks extends Context.Tag("test/Mocks")<
  Mocks,
  { readonly first: LLMock; readonly second: LLMock; readonly locked: LLMock }
>() {}

/** Streams texts in pieces of five characters. */
const mock = (key: string) => makeMock(key, { chunkSize: 5 })

export const mocks = Layer.scoped(
  Mocks,
  Effect.all({ first: mock("first-secret"), second: mock("second-secret"), locked: mock("known-to-nobody") })
)

const provider = ({ url }: LLMock, credential: string) => ({
  adapter: "openai-chat",
  base_url: `${url}/v1`,
  credential
})

/** A gateway with the mocks, whose providers are named `first`, `second` and `locked`. */
export const layer = (models: Readonly<Record<string, ReadonlyArray<CatalogRoute>>>) =>
  Served.layer(
    Effect.map(Mocks, ({ first, locked, second }) => ({
      catalog: chatCatalog(
        {
          first: provider(first, "FIRST_KEY"),
          second: provider(second, "SECOND_KEY"),
          locked: provider(locked, "LOCKED_KEY")
        },
        models
      ),
      env: { FIRST_KEY: "first-secret", SECOND_KEY: "second-secret", LOCKED_KEY: "wrong", FIRST_BYTE_TIMEOUT: "2" }
    }))
  ).pipe(Layer.provideMerge(mocks))

/** Returns the bodies that a mock received for a model, oldest first, without the fields that the mock adds. */
export const bodiesFor = (asked: LLMock, model: string): ReadonlyArray<Record<string, unknown>> =>
  asked.getRequests().flatMap(({ body }) => {
    if (body === null || body["model"] !== model) return []
    return [Object.fromEntries(Object.entries(body).filter(([name]) => !name.startsWith("_")))]
  })

export const usage = { prompt_tokens: 123, completion_tokens: 45, total_tokens: 168 }
/** The price of the usage, in nano-USD. */
export const cost = NanoUsd(123n * price.prompt + 45n * price.completion)

export const weatherTool = {
  type: "function" as const,
  function: {
    name: "weather",
    description: "The weather of a city",
    parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"] }
  }
}
