import { Array as Arr, type Context, Effect } from "effect"
import type { ChatRequest } from "../../domain/Chat.ts"
import { needs, tooMuchAtOnce } from "../../domain/ChatRules.ts"
import type { ChatModel, Route } from "../../domain/Model.ts"
import { chatCharge } from "../../domain/Pricing.ts"
import * as Monotonic from "../runtime/Monotonic.ts"
import type { Attempt, CostOf } from "./Attempt.ts"
import type { Attempts } from "./Attempts.ts"
import { openStream } from "./ChatStream.ts"
import { failover, type Means } from "./Failover.ts"
import type { ChatAdapter } from "./Provider.ts"
import { adapterOf, type Providers } from "./Providers.ts"
import * as Candidates from "./RouteSelection.ts"
import type { RoutingDeadlines } from "./RoutingDeadlines.ts"

const chatCost: CostOf<Route> = ({ cost }, spent) =>
  cost === undefined || spent === "whole" ? undefined : chatCharge(cost, spent)

/** Chats over the routes of their models. */
export const makeChatRouting = (
  providers: Context.Tag.Service<Providers>,
  means: Means,
  deadlines: RoutingDeadlines
) => {
  const now = () => Monotonic.millisOf(means.clock)
  const within = deadlines.requestTimeoutSeconds * 1000
  const firstByte = deadlines.firstByteTimeoutSeconds * 1000

  const chatOf = ({ provider }: Route) => providers.get(provider.adapter)?.chat
  const declined = (request: ChatRequest) => (route: Route) => chatOf(route)?.declines?.(route, request)

  const candidates = (model: ChatModel, request: ChatRequest): ReadonlyArray<Route> =>
    Candidates.able(model.routes, () => needs(request)).filter((route) => declined(request)(route) === undefined)

  const admit = (model: ChatModel, request: ChatRequest) =>
    Effect.suspend(() => {
      if (candidates(model, request).length > 0) return Effect.void
      const able = Candidates.able(model.routes, () => needs(request))
      const param = Arr.isNonEmptyReadonlyArray(able)
        ? declined(request)(able[0])
        : Candidates.unserved(model.routes, needs(request))
      return Effect.fail(tooMuchAtOnce(model, param ?? null))
    })

  const chatPlan = (model: ChatModel, request: ChatRequest, attempts: Attempts, since: number | undefined) =>
    Effect.map(Candidates.inOrder(candidates(model, request)), (routes) => ({
      model,
      routes,
      attempts,
      costOf: chatCost,
      within: since === undefined ? within : Math.max(0, within - now() + since),
      fairAttempt: firstByte
    }))

  const inlines = (model: ChatModel, request: ChatRequest) =>
    Effect.sync(() =>
      Candidates.able(model.routes, () => needs(request)).some((route) => chatOf(route)?.inlines?.(route) !== false)
    )

  /** The request in the form that this route takes. */
  const as = (request: ChatRequest, { inlines }: ChatAdapter, route: Route): ChatRequest =>
    request.inlined !== undefined && inlines?.(route) !== false ? { ...request, messages: request.inlined } : request

  const complete = (model: ChatModel, request: ChatRequest, attempts: Attempts, since?: number) =>
    Effect.flatMap(chatPlan(model, request, attempts, since), (plan) =>
      failover(means, {
        ...plan,
        attemptWithin: undefined,
        ask: (attempt: Attempt<Route>) =>
          Effect.flatMap(adapterOf(providers, attempt.route, "chat"), (adapter) =>
            Effect.map(adapter.complete(attempt.route, as(request, adapter, attempt.route)), (answer) => {
              attempt.answered()
              attempt.whole()
              return { route: attempt.route, answer }
            })
          )
      })
    )

  const stream = (model: ChatModel, request: ChatRequest, attempts: Attempts, since?: number) =>
    Effect.flatMap(Effect.scope, (scope) => {
      const endsAt = now() + deadlines.streamTimeoutSeconds * 1000
      return Effect.flatMap(chatPlan(model, request, attempts, since), (plan) =>
        failover(means, {
          ...plan,
          attemptWithin: firstByte,
          ask: (attempt: Attempt<Route>) =>
            Effect.flatMap(adapterOf(providers, attempt.route, "chat"), (adapter) =>
              openStream(
                {
                  adapter,
                  attempts,
                  deadlines: means.deadlines,
                  endsAt,
                  request: as(request, adapter, attempt.route),
                  scope
                },
                attempt
              )
            )
        })
      )
    })

  return { admit, complete, inlines, stream }
}
