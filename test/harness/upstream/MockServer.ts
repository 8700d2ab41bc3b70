import { LLMock, type MockServerOptions } from "@copilotkit/aimock"
import { Effect } from "effect"

/** An upstream that others wrote, which takes this key alone. */
export const makeMock = (key: string, options: MockServerOptions = {}) =>
  Effect.acquireRelease(
    Effect.promise(() => LLMock.create({ port: 0, auth: { apiKeys: [key] }, ...options })),
    (made) => Effect.promise(() => made.stop())
  )
