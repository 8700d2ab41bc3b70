import { Cause, Clock, Data, Effect, Either, Option, Schema } from "effect"
import type { ChatRequest } from "../../domain/Chat.ts"
import { applyRules } from "../../domain/ChatRules.ts"
import type { InvalidRequest, RoutingFailure } from "../../domain/Failure.ts"
import { answerCost, makesShape } from "../../domain/Image.ts"
import { type ChatModel, type ImageModel, modelAt, quoteModel, type RouteBase } from "../../domain/Model.ts"
import { type NanoUsd, zero } from "../../domain/Money.ts"
import { OrgId } from "../../domain/Organization.ts"
import { boundUsage, chatCharge } from "../../domain/Pricing.ts"
import { sizeOf } from "../../domain/Shape.ts"
import { Catalog } from "../catalog/Catalog.ts"
import { isSandbox } from "../catalog/CatalogRules.ts"
import { TextOrNull, Usd } from "../resources/ResourceRecord.ts"
import { type AttemptEntry, AttemptHistory } from "../routing/Attempt.ts"
import { ProviderRouter } from "../routing/ProviderRouter.ts"
import { monotonicMillis } from "../runtime/System.ts"
import { toStorable } from "../sql/SqlStatement.ts"
import { operation } from "./AdminOperation.ts"
import { Audit } from "./AuditLog.ts"

const TestAttempt = Schema.Struct({
  route: Schema.String,
  provider: Schema.String,
  outcome: Schema.String.annotations({
    description:
      "`ok`, the class of the failure, `skipped` if the route is disabled or its circuit is open, or `cancelled`."
  }),
  status: Schema.NullOr(Schema.Number),
  ms: Schema.Number,
  detail: TextOrNull
})

export const ModelTest = Schema.Struct({
  model: Schema.String,
  ok: Schema.Boolean,
  route: TextOrNull.annotations({ description: "The route that answered, or null." }),
  text: TextOrNull.annotations({ description: "The start of a chat model's answer." }),
  image_size: TextOrNull.annotations({ description: "The size of the image, such as `1024x1024`." }),
  error: TextOrNull.annotations({ description: "The reason if the test failed." }),
  latency_ms: Schema.Number,
  prompt_tokens: Schema.NullOr(Schema.Number),
  completion_tokens: Schema.NullOr(Schema.Number),
  cost_usd: Schema.NullOr(Usd).annotations({
    description: "What the provider charges you, including failed attempts. Null if the cost is unknown."
  }),
  attempts: Schema.Array(TestAttempt)
}).annotations({ identifier: "ModelTest" })
export type ModelTest = typeof ModelTest.Type

export class ModelUnknown extends Data.TaggedError("ModelUnknown")<{ readonly model: string }> {
  override get message() {
    return `There is no model ${quoteModel(this.model)}.`
  }
}

/** The model or the route cannot be called now, or too many tests run. */
export class TestRefused extends Data.TaggedError("TestRefused")<{
  readonly message: string
  readonly param: string | null
}> {}

/** The request for a test is wrong, whatever the state of the gateway. */
export class TestInvalid extends Data.TaggedError("TestInvalid")<{
  readonly message: string
  readonly param: string | null
}> {}

const maxConcurrent = 2
const maxPerMinute = 30
const timeLimitSeconds = 60
const maxTextLength = 1_000

/** Separates the circuits of organizations from those of tests. No organization has this id. */
const testOrganization = OrgId.make("model tests")

const toShortText = (text: string): string => toStorable(text.slice(0, maxTextLength))

const prompt = "Reply with the word OK."
/** The minimum of the OpenAI Responses API. */
const minOutputTokens = 16
/** With less, models that reason would return no text. */
const reasoningOutputTokens = 512

const chatRequest = ({ id, reasoning }: ChatModel): ChatRequest => ({
  model: id,
  messages: [{ role: "user", content: prompt }],
  stream: false,
  includeUsage: false,
  maxTokens: reasoning === "none" ? minOutputTokens : reasoningOutputTokens,
  hasDefaultMaxTokens: true,
  stop: [],
  tools: [],
  webSearch: false,
  reasoningEffort: "low",
  isEffortHint: true
})

type Answered = Pick<ModelTest, "text" | "image_size" | "prompt_tokens" | "completion_tokens"> & {
  readonly route: RouteBase
  /** Undefined if the cost is unknown. */
  readonly cost: NanoUsd | undefined
}

const testChat = Effect.fnUntraced(function* (model: ChatModel, attempts: AttemptHistory) {
  const router = yield* ProviderRouter
  const request = yield* applyRules(model, chatRequest(model))
  const { answer, route } = yield* router.complete(model, request, attempts)
  const usage = answer.usage && boundUsage(answer.usage, model, request).usage
  const listedCost = route.cost && usage && (answer.isFree === true ? zero : chatCharge(route.cost, usage))
  return {
    route,
    text: answer.content === null ? null : toShortText(answer.content),
    image_size: null,
    prompt_tokens: usage?.prompt ?? null,
    completion_tokens: usage?.completion ?? null,
    cost: answer.usage?.statedCost ?? listedCost
  } satisfies Answered
})

const testImage = Effect.fnUntraced(function* (model: ImageModel, attempts: AttemptHistory) {
  const router = yield* ProviderRouter
  const { onlyRoute } = attempts
  const routes = model.routes.filter(({ id }) => onlyRoute === undefined || id === onlyRoute)
  const [variant = model.variants[0]] = model.variants
    .filter(({ resolution, shape }) => routes.some((route) => makesShape(route, resolution, shape)))
    .toSorted((one, other) => Number(one.price - other.price))
  const { resolution, shape } = variant
  const request = { prompt: "A red circle on a white background.", resolution, shape, references: [] }
  const { inputTokens, picture, route, statedCost } = yield* router.image(
    model,
    request,
    attempts,
    yield* monotonicMillis
  )
  return {
    route,
    text: null,
    image_size: sizeOf(picture),
    prompt_tokens: null,
    completion_tokens: null,
    cost: statedCost ?? answerCost(route, variant, inputTokens)
  } satisfies Answered
})

const toAttempt = ({ detail, ms, outcome, provider, route, status }: AttemptEntry): typeof TestAttempt.Type => ({
  route,
  provider,
  outcome,
  status: status ?? null,
  ms: Math.round(ms),
  detail: detail === undefined ? null : toShortText(detail)
})

const notCalled =
  "No route was called: each is disabled, or its circuit breaker is open. Enable or reset a route first."

/** The client has left, or the gateway is stopping. */
class TestCancelled extends Data.TaggedError("TestCancelled")<{}> {}

const explain = (
  failure: RoutingFailure | InvalidRequest | TestCancelled | undefined,
  attempts: ReadonlyArray<AttemptEntry>
): string => {
  if (failure === undefined) return `No answer within ${timeLimitSeconds} seconds.`
  if (failure._tag === "TestCancelled") return "The test was cancelled."
  if (failure._tag === "InvalidRequest") return failure.message
  const last = attempts.findLast(({ outcome }) => outcome !== "skipped")
  if (last === undefined) return notCalled
  const { detail = "", outcome, status } = last
  const hasStatus = status !== undefined && !detail.startsWith(String(status))
  return toShortText(`${outcome}: ${hasStatus ? `${status} ` : ""}${detail}`.trim())
}

/** Returns the cost of the failed attempts; undefined if none is known. */
const failedCost = (attempts: ReadonlyArray<AttemptEntry>): bigint | undefined => {
  const costs = attempts.flatMap(({ cost, statedCost }) => statedCost ?? cost ?? [])
  return costs.length === 0 ? undefined : costs.reduce((sum, cost) => sum + cost, 0n)
}

const unanswered = {
  ok: false,
  route: null,
  text: null,
  image_size: null,
  prompt_tokens: null,
  completion_tokens: null
}

const callModel = Effect.fnUntraced(function* (model: ChatModel | ImageModel, onlyRoute: string | undefined) {
  const attempts = new AttemptHistory(testOrganization)
  attempts.onlyRoute = onlyRoute
  const startedAt = yield* monotonicMillis
  const call: Effect.Effect<Answered, RoutingFailure | InvalidRequest, ProviderRouter> =
    model.surface === "chat" ? testChat(model, attempts) : testImage(model, attempts)
  const result = yield* call.pipe(
    Effect.timeoutOption(`${timeLimitSeconds} seconds`),
    // The audit log needs a result, because the provider may charge for a cancelled call too.
    Effect.catchAllCause((cause) =>
      Effect.failCause<RoutingFailure | InvalidRequest | TestCancelled>(
        Cause.isInterruptedOnly(cause) ? Cause.fail(new TestCancelled()) : cause
      )
    ),
    Effect.either
  )
  const common = {
    model: model.id,
    latency_ms: Math.round((yield* monotonicMillis) - startedAt),
    attempts: attempts.list.map(toAttempt)
  }
  const spent = failedCost(attempts.list)
  if (Either.isLeft(result) || Option.isNone(result.right)) {
    const error = explain(Either.isLeft(result) ? result.left : undefined, attempts.list)
    return { ...common, ...unanswered, error, cost_usd: spent ?? null } satisfies ModelTest
  }
  const { cost, route, ...answer } = result.right.value
  const total = isSandbox(route) ? 0n : cost === undefined ? null : cost + (spent ?? 0n)
  return { ...common, ...answer, ok: true, route: route.id, error: null, cost_usd: total } satisfies ModelTest
})

/** Returns the model at the current prices, if it and the route can be called. */
const findTestable = Effect.fnUntraced(function* (id: string, route: string | undefined) {
  const { findId, saleStates } = (yield* Catalog).current
  const state = saleStates.find(({ model }) => model.id === id)
  if (state === undefined) return yield* new ModelUnknown({ model: id })
  const listed = findId(id)
  const model = listed && modelAt(listed, yield* Clock.currentTimeMillis)
  if (route !== undefined) {
    const routes = [...state.model.routes, ...(model?.routes ?? [])].map((one) => one.id)
    if (!routes.includes(route)) {
      const message = `${quoteModel(id)} has no route ${route}. Its routes: ${[...new Set(routes)].join(", ")}.`
      return yield* new TestInvalid({ message, param: "route" })
    }
    const blocked = state.blockedRoutes.get(route)
    if (blocked !== undefined) {
      return yield* new TestRefused({ message: `${route} cannot be called: ${blocked}.`, param: "route" })
    }
  }
  if (model === undefined) {
    const message = `${quoteModel(id)} cannot be called: ${state.reason ?? "it has no route"}.`
    return yield* new TestRefused({ message, param: null })
  }
  if (model.surface === "video") {
    const message = "Video models cannot be tested here. Create a short video with `POST /v1/videos`."
    return yield* new TestInvalid({ message, param: null })
  }
  return model
})

/** Limits the tests of this instance, because each costs money. */
const makeLimit = Effect.map(Effect.makeSemaphore(maxConcurrent), (semaphore) => {
  let starts: ReadonlyArray<number> = []
  const takeStart = Effect.flatMap(monotonicMillis, (now) => {
    starts = starts.filter((at) => now - at < 60_000)
    if (starts.length >= maxPerMinute) {
      const message = `At most ${maxPerMinute} tests can run per minute. Try again later.`
      return new TestRefused({ message, param: null })
    }
    starts = [...starts, now]
    return Effect.void
  })
  return <A, E, R>(test: Effect.Effect<A, E, R>) =>
    semaphore
      .withPermitsIfAvailable(1)(Effect.zipRight(takeStart, test))
      .pipe(
        Effect.flatMap(
          Option.match({
            onNone: () => {
              const message = `${maxConcurrent} tests are running. Try again when one has finished.`
              return new TestRefused({ message, param: null })
            },
            onSome: (result) => Effect.succeed(result)
          })
        )
      )
})

/**
 * Returns the test of a model, or of one of its routes. It sends the smallest request and returns the answer or the failed
 * attempts. No organization pays for it, so each test is in the audit log.
 */
export const makeModelTest = Effect.map(makeLimit, (limit) =>
  operation(
    "Send the smallest request to a model and show the answer, its latency and its cost",
    (id: string, route?: string) =>
      Effect.gen(function* () {
        const model = yield* findTestable(id, route)
        const { record } = yield* Audit
        return yield* record({
          action: "models.test",
          target: id,
          input: { model: id, route },
          record: ModelTest,
          run: limit(callModel(model, route)),
          recordOf: (test: ModelTest) => test
        })
      })
  )
)
