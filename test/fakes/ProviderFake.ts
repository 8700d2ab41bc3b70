import { Deferred, type Duration, Effect, Layer, Option } from "effect"
import type { ChatAnswer, ChatEvent, ChatRequest } from "../../src/domain/Chat.ts"
import type { ChatModel, Route } from "../../src/domain/Model.ts"
import { zero } from "../../src/domain/Money.ts"
import { OrgId } from "../../src/domain/Organization.ts"
import { allFeatures } from "../../src/services/catalog/EntryFields.ts"
import {
  type ChatAdapter,
  type ChatPull,
  type FailureClass,
  ProviderFailure,
  Providers
} from "../../src/services/routing/Provider.ts"

/** The result of one pull of a stream. A pull of `hang` waits until the call is cancelled. */
export type Pull = ReadonlyArray<ChatEvent> | ProviderFailure | "hang" | { readonly wait: Duration.DurationInput }

/** How a route answers one call, with or without a stream. */
export interface Step {
  readonly complete: Effect.Effect<ChatAnswer, ProviderFailure>
  /** Fails if the stream cannot be opened. Otherwise the pulls follow, then the regular end. */
  readonly open: Effect.Effect<void, ProviderFailure>
  readonly pulls: ReadonlyArray<Pull>
}

export const content = (text: string): ChatEvent => ({ type: "content", text })
export const finish: ChatEvent = { type: "finish", reason: "stop" }
export const usage: ChatEvent = {
  type: "usage",
  usage: { prompt: 7, completion: 3, cached: 0, cacheWrite: 0, reasoning: 0 }
}

export const answer = (text: string): ChatAnswer => ({
  content: text,
  reasoning: undefined,
  toolCalls: [],
  finish: "stop",
  usage: usage.type === "usage" ? usage.usage : undefined
})

/** Returns a step that answers both kinds of calls. A stream has two pulls. */
export const answers = (text = "hello", after: Duration.DurationInput = 0): Step => ({
  complete: Effect.delay(Effect.succeed(answer(text)), after),
  open: Effect.sleep(after),
  pulls: [[content(text)], [finish, usage]]
})

export const failure = (
  kind: FailureClass,
  status: number | undefined,
  more: Partial<
    Pick<
      ProviderFailure,
      "isRequestFault" | "isUnsent" | "retryAfterSeconds" | "param" | "spent" | "reason" | "reasonCode" | "detail"
    >
  > = {}
): ProviderFailure => new ProviderFailure({ class: kind, status, detail: `${kind} of the fake`, ...more })

export const fails = (given: ProviderFailure, after: Duration.DurationInput = 0): Step => ({
  complete: Effect.delay(given, after),
  open: Effect.delay(given, after),
  pulls: []
})

export const hangs: Step = { complete: Effect.never, open: Effect.never, pulls: [] }

export const dies: Step = { complete: Effect.die("a bug"), open: Effect.die("a bug"), pulls: [] }

export const streams = (...pulls: ReadonlyArray<Pull>): Step => ({
  complete: Effect.dieMessage("this script is a stream's"),
  open: Effect.void,
  pulls
})

type Cancelled = Effect.Effect<never, Option.Option<ProviderFailure>>

const untilCancelled = Effect.map(
  Effect.acquireRelease(Deferred.make<never, Option.Option<ProviderFailure>>(), (cancelled) =>
    Deferred.fail(cancelled, Option.some(failure("network", undefined)))
  ),
  (cancelled): Cancelled => Deferred.await(cancelled)
)

const play = (pulls: ReadonlyArray<Pull>) => {
  const left = [...pulls]
  return (cancelled: Cancelled): ChatPull => {
    const pull: ChatPull = Effect.suspend(() => {
      const next = left.shift()
      if (next === undefined) return Effect.fail(Option.none())
      if (next === "hang") return cancelled
      if (next instanceof ProviderFailure) return Effect.fail(Option.some(next))
      return "wait" in next
        ? Effect.zipRight(Effect.raceFirst(Effect.sleep(next.wait), cancelled), pull)
        : Effect.succeed(next)
    })
    return pull
  }
}

/** Providers by script. Each route runs its steps in order and repeats the last one. A route without steps answers. */
export class ProviderFake {
  /** Ids of the called routes, in order. */
  readonly calls: Array<string> = []
  /** Ids of the routes with running calls. */
  readonly busy: Array<string> = []
  readonly #scripts = new Map<string, Array<Step>>()

  on(route: Route, ...steps: ReadonlyArray<Step>): this {
    this.#scripts.set(route.id, [...steps])
    return this
  }

  readonly chat: ChatAdapter = {
    features: allFeatures,
    complete: (route) => Effect.scoped(Effect.flatMap(this.#call(route), ({ complete }) => complete)),
    stream: (route) =>
      Effect.flatMap(this.#call(route), ({ open, pulls }) =>
        Effect.zipRight(open, Effect.map(untilCancelled, play(pulls)))
      )
  }

  readonly layer = Layer.succeed(Providers, new Map([["fake", { adapter: "fake", chat: this.chat }]]))

  #call(route: Route) {
    return Effect.acquireRelease(
      Effect.sync(() => {
        this.calls.push(route.id)
        this.busy.push(route.id)
        const script = this.#scripts.get(route.id) ?? []
        return (script.length > 1 ? script.shift() : script[0]) ?? answers()
      }),
      () => Effect.sync(() => this.busy.splice(this.busy.indexOf(route.id), 1))
    )
  }
}

export const route = (provider: string, more: Partial<Route> = {}): Route => ({
  id: `m@${provider}`,
  provider: { name: provider, adapter: "fake", baseUrl: undefined, credential: undefined, headers: {} },
  model: "theirs",
  preference: 1,
  weight: 1,
  options: {},
  capabilities: undefined,
  cost: undefined,
  ...more
})

/** A model whose routes are tried in this order. */
export const model = (...routes: ReadonlyArray<Route>): ChatModel => ({
  id: "m",
  created: 0,
  routes: routes.map((one, index) => ({ ...one, preference: index + 1 })),
  surface: "chat",
  family: "A",
  contextLength: 100_000,
  maxOutput: 8192,
  maxOutputPolicy: "clamp",
  sampling: true,
  reasoning: "none",
  capabilities: new Set(["tools", "vision", "response_format", "web_search", "reasoning"]),
  pricing: { prompt: zero, completion: zero, cachedPrompt: undefined, cacheWrite: undefined, longContext: undefined },
  official: undefined,
  imageTokens: 0,
  webSearchTokens: 0,
  maxWebSearches: 10
})

export const acme = OrgId.make("acme")

export const request = (more: Partial<ChatRequest> = {}): ChatRequest => ({
  model: "m",
  messages: [{ role: "user", content: "hi" }],
  stream: false,
  includeUsage: false,
  maxTokens: 4096,
  stop: [],
  tools: [],
  webSearch: false,
  ...more
})
