import { scopeOf } from "../../domain/ApiKey.ts"
import * as Failure from "../../domain/Failure.ts"
import type { Surface } from "../../domain/Model.ts"
import { fromUsd, type NanoUsd, zero } from "../../domain/Money.ts"
import { type Envelope, toWire, type WireError } from "../errors/ErrorMessages.ts"
import { messagesError } from "../messages/MessagesErrors.ts"
import { responsesError } from "../responses/ResponsesAnswer.ts"

type Tag = Failure.Failure["_tag"]

const usd = (text: string): NanoUsd => fromUsd(text) ?? zero

const spend = { cap: usd("10"), spent: usd("10"), held: zero }
const resets = {
  day: new Date("2026-11-25T00:00:00Z"),
  week: new Date("2026-11-30T00:00:00Z"),
  month: new Date("2026-12-01T00:00:00Z"),
  total: undefined
}

export const failuresOf = (
  surface: Surface | undefined
): { readonly [tag in Tag]: ReadonlyArray<Failure.Failure> } => ({
  InvalidRequest: [new Failure.InvalidRequest({ message: "`model` is required.", param: "model" })],
  UpstreamRejected: [null, surface === "chat" ? "messages" : "image"].map(
    (param) => new Failure.UpstreamRejected({ param })
  ),
  ContentRejected: [new Failure.ContentRejected()],
  MissingApiKey: [new Failure.MissingApiKey()],
  InvalidApiKey: [new Failure.InvalidApiKey()],
  OrganizationSuspended: [new Failure.OrganizationSuspended()],
  InsufficientCredits: [new Failure.InsufficientCredits({ needed: usd("0.25"), available: usd("0.01") })],
  SpendLimitReached: (["day", "week", "month", "total"] as const).flatMap((period) =>
    (["key", "organization"] as const).map(
      (of) => new Failure.SpendLimitReached({ of, period, spend: { ...spend, resetsAt: resets[period] } })
    )
  ),
  PaymentDisputed: [new Failure.PaymentDisputed()],
  InsufficientScope: [new Failure.InsufficientScope({ scope: scopeOf[surface ?? "chat"] })],
  AddressBlocked: [new Failure.AddressBlocked()],
  ModelNotFound: [
    new Failure.ModelNotFound({ model: "no-such-model", surface }),
    new Failure.ModelNotFound({ model: "a-modell", surface, suggestions: ["a-model"] })
  ],
  ModelNotAllowed: [new Failure.ModelNotAllowed({ model: "another-model" })],
  VideoNotFound: [new Failure.VideoNotFound()],
  RequestNotFound: [new Failure.RequestNotFound()],
  VideoNotFinished: [new Failure.VideoNotFinished()],
  UnknownEndpoint: [new Failure.UnknownEndpoint()],
  MisspeltPath: [new Failure.MisspeltPath({ meant: "/v1/chat/completions" })],
  UnknownMethod: [new Failure.UnknownMethod({ path: "/v1/chat/completions", methods: ["POST"] })],
  IdempotencyConflict: [new Failure.IdempotencyConflict()],
  BodyTooLarge: [new Failure.BodyTooLarge({ limitBytes: 33_554_432 })],
  BodyTooSlow: [new Failure.BodyTooSlow({ bytesPerSecond: 1000 })],
  GatewayBusy: [new Failure.GatewayBusy()],
  RateLimited: [new Failure.RateLimited({ limit: 600 })],
  TokensLimited: [new Failure.TokensLimited({ limit: 100_000, retryAfterSeconds: 42 })],
  ConcurrencyLimited: [new Failure.ConcurrencyLimited({ limit: 5 })],
  SettleFailed: [new Failure.SettleFailed()],
  UpstreamFailed: [new Failure.UpstreamFailed()],
  UpstreamAuthFailed: [new Failure.UpstreamAuthFailed()],
  AllProvidersFailed: [new Failure.AllProvidersFailed({ provider: "openai", status: 503 })],
  NoHealthyProvider: [new Failure.NoHealthyProvider()],
  NotSignedIn: [new Failure.NotSignedIn({ message: "Sign in, or send an operator's token." })],
  InsufficientRole: (["write", "owner"] as const).map((needed) => new Failure.InsufficientRole({ needed })),
  ForeignOrigin: [new Failure.ForeignOrigin()],
  SignInLimited: [new Failure.SignInLimited({ retryAfterSeconds: 60 })],
  ChangesLimited: [new Failure.ChangesLimited({ limit: 60, retryAfterSeconds: 42 })],
  NotFound: [new Failure.NotFound({ message: "There is no organization acme." })],
  Conflict: [new Failure.Conflict({ message: "An organization named acme exists already.", param: "name" })],
  Aborted: [new Failure.Aborted()],
  TimedOut: [new Failure.TimedOut()]
})

const anyText = "^[\\s\\S]+$"

const patterns: { readonly [tag in Tag]?: string } = {
  InvalidRequest: anyText,
  NotSignedIn: anyText,
  NotFound: anyText,
  Conflict: anyText,
  ModelNotFound: "^The model `[\\s\\S]*` does not exist(?: or is not (?:a chat|an image|a video) model)?\\.$",
  ModelNotAllowed: "^API key may not use the model `[\\s\\S]*`\\.$",
  BodyTooLarge: "^The request body is larger than \\d+ bytes\\.$",
  TokensLimited: "^Rate limit exceeded: \\d+ tokens per minute for this key\\.$",
  ConcurrencyLimited: "^Too many requests at once for this key; the limit is \\d+\\.$",
  AllProvidersFailed: "^All providers failed \\(last: .+ (?:\\d{3}|network)\\)\\.$"
}

const failuresAmong = (classes: ReadonlyArray<unknown>, surface: Surface | undefined) =>
  Object.values(failuresOf(surface))
    .flat()
    .filter((failure) => classes.some((type) => typeof type === "function" && failure instanceof type))

const unique = <A>(values: ReadonlyArray<A>): ReadonlyArray<A> => [...new Set(values)]

export const errorContent = (classes: ReadonlyArray<unknown>, surface: Surface | undefined) =>
  contentOf(failuresAmong(classes, surface), ({ body }) => body)

const contentOf = (failures: ReadonlyArray<Failure.Failure>, encode: (error: WireError) => Envelope) => {
  const errors = failures.map((failure) => ({ body: encode(toWire(failure)), pattern: patterns[failure._tag] }))
  const bodies = errors.map(({ body }) => body)
  const fixed = errors.flatMap(({ body, pattern }) => (pattern === undefined ? [body.error.message] : []))
  const messages = [
    ...(fixed.length === 0 ? [] : [{ enum: unique(fixed) }]),
    ...errors.flatMap(({ pattern }) => (pattern === undefined ? [] : [{ pattern }]))
  ]
  const error = {
    type: { enum: unique(bodies.map((body) => body.error.type)) },
    code: { enum: unique(bodies.map((body) => body.error.code)) },
    message: messages.length === 1 ? messages[0] : { anyOf: messages }
  }
  return {
    schema: { allOf: [{ $ref: "#/components/schemas/Error" }, { properties: { error: { properties: error } } }] },
    examples: Object.fromEntries(
      bodies.map((value, index) => [`${value.error.code ?? value.error.type}_${index + 1}`, { value }])
    )
  }
}

const tooLong = new Failure.UpstreamRejected({
  param: null,
  reason: "Your input exceeds the context window of this model. Please adjust your input and try again.",
  reasonCode: "context_length_exceeded"
})

/** The same with the field names of the Responses convention, and with the provider's own words. */
export const responsesErrorContent = (classes: ReadonlyArray<unknown>) =>
  contentOf(
    [...failuresAmong(classes, "chat"), ...(classes.includes(Failure.UpstreamRejected) ? [tooLong] : [])],
    responsesError
  )

/** The same in the envelope of the Messages API, whose messages are the provider's too. */
export const messagesErrorContent = (classes: ReadonlyArray<unknown>) => {
  const errors = failuresAmong(classes, "chat").map((failure) =>
    messagesError(toWire(failure).body, undefined, "req_5d0f")
  )
  return {
    schema: {
      allOf: [
        { $ref: "#/components/schemas/MessagesError" },
        { properties: { error: { properties: { type: { enum: unique(errors.map(({ error }) => error.type)) } } } } }
      ]
    },
    examples: Object.fromEntries(errors.map((value, index) => [`${value.error.type}_${index + 1}`, { value }]))
  }
}
