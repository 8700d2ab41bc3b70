import { scopeOf } from "../../domain/ApiKey.ts"
import * as Failure from "../../domain/Failure.ts"
import type { Surface } from "../../domain/Model.ts"
import { fromUsd, type NanoUsd, zero } from "../../domain/Money.ts"
import { toWire, type WireError } from "../errors/ErrorMessages.ts"
import { messagesError } from "../messages/MessagesErrors.ts"
import { responsesError } from "../responses/ResponsesAnswer.ts"

type Tag = Failure.Failure["_tag"]

const usd = (text: string): NanoUsd => fromUsd(text) ?? zero

const spend = { cap: usd("10"), spent: usd("10"), held: zero, resetsAt: new Date("2026-12-01T00:00:00Z") }

/** An example of each failure: what the document says of errors is what `toWire` makes of these. */
export const failuresOf = (surface: Surface = "chat"): { readonly [tag in Tag]: Failure.Failure } => ({
  InvalidRequest: new Failure.InvalidRequest({ message: "`model` is required.", param: "model" }),
  UpstreamRejected: new Failure.UpstreamRejected({ param: null }),
  ContentRejected: new Failure.ContentRejected(),
  MissingApiKey: new Failure.MissingApiKey(),
  InvalidApiKey: new Failure.InvalidApiKey(),
  OrganizationSuspended: new Failure.OrganizationSuspended(),
  InsufficientCredits: new Failure.InsufficientCredits({ needed: usd("0.25"), available: usd("0.01") }),
  SpendLimitReached: new Failure.SpendLimitReached({ period: "month", spend }),
  PaymentDisputed: new Failure.PaymentDisputed(),
  InsufficientScope: new Failure.InsufficientScope({ scope: scopeOf[surface] }),
  AddressBlocked: new Failure.AddressBlocked(),
  ModelNotFound: new Failure.ModelNotFound({ model: "a-modell", surface, suggestions: ["a-model"] }),
  ModelNotAllowed: new Failure.ModelNotAllowed({ model: "another-model" }),
  VideoNotFound: new Failure.VideoNotFound(),
  RequestNotFound: new Failure.RequestNotFound(),
  VideoNotFinished: new Failure.VideoNotFinished(),
  UnknownEndpoint: new Failure.UnknownEndpoint(),
  MisspeltPath: new Failure.MisspeltPath({ meant: "/v1/chat/completions" }),
  UnknownMethod: new Failure.UnknownMethod({ path: "/v1/chat/completions", methods: ["POST"] }),
  IdempotencyConflict: new Failure.IdempotencyConflict(),
  BodyTooLarge: new Failure.BodyTooLarge({ limitBytes: 33_554_432 }),
  BodyTooSlow: new Failure.BodyTooSlow({ bytesPerSecond: 1000 }),
  GatewayBusy: new Failure.GatewayBusy(),
  RateLimited: new Failure.RateLimited({ limit: 600 }),
  TokensLimited: new Failure.TokensLimited({ limit: 100_000, retryAfterSeconds: 42 }),
  ConcurrencyLimited: new Failure.ConcurrencyLimited({ limit: 5 }),
  SettleFailed: new Failure.SettleFailed(),
  UpstreamFailed: new Failure.UpstreamFailed(),
  UpstreamAuthFailed: new Failure.UpstreamAuthFailed(),
  AllProvidersFailed: new Failure.AllProvidersFailed({ provider: "openai", status: 503 }),
  NoHealthyProvider: new Failure.NoHealthyProvider(),
  NotSignedIn: new Failure.NotSignedIn({ message: "Sign in, or send an operator's token." }),
  InsufficientRole: new Failure.InsufficientRole({ needed: "owner" }),
  ForeignOrigin: new Failure.ForeignOrigin(),
  SignInLimited: new Failure.SignInLimited({ retryAfterSeconds: 60 }),
  ChangesLimited: new Failure.ChangesLimited({ limit: 60, retryAfterSeconds: 42 }),
  NotFound: new Failure.NotFound({ message: "There is no organization acme." }),
  Conflict: new Failure.Conflict({ message: "An organization named acme exists already.", param: "name" }),
  Aborted: new Failure.Aborted(),
  TimedOut: new Failure.TimedOut()
})

/** The Responses convention has the provider's own words and codes. */
const tooLong = new Failure.UpstreamRejected({
  param: null,
  reason: "Your input exceeds the context window of this model. Please adjust your input and try again.",
  reasonCode: "context_length_exceeded"
})

interface ErrorForm {
  readonly schema: string
  readonly encode: (error: WireError) => {
    readonly error: { readonly type: string; readonly code?: string | null | undefined }
  }
}

const usual: ErrorForm = { schema: "Error", encode: ({ body }) => body }

/** The errors of groups of endpoints that have their own form. */
const forms: Readonly<Record<string, ErrorForm>> = {
  messages: { schema: "MessagesError", encode: ({ body }) => messagesError(body, undefined, "req_5d0f") },
  responses: { schema: "Error", encode: responsesError }
}

const enumOf = (values: ReadonlyArray<unknown>) => ({ enum: [...new Set(values)] })

/** The types, codes and examples of an error response of a group of endpoints. */
export const errorContent = (classes: ReadonlyArray<unknown>, group: string, surface?: Surface) => {
  const { encode, schema } = forms[group] ?? usual
  const failures = [...Object.values(failuresOf(surface)), ...(group === "responses" ? [tooLong] : [])]
  const bodies = failures
    .filter((failure) => classes.some((type) => typeof type === "function" && failure instanceof type))
    .map((failure) => encode(toWire(failure)))
  const codes = bodies.map(({ error }) => error.code)
  const error = {
    type: enumOf(bodies.map(({ error }) => error.type)),
    ...(codes.includes(undefined) ? undefined : { code: enumOf(codes) })
  }
  return {
    schema: { allOf: [{ $ref: `#/components/schemas/${schema}` }, { properties: { error: { properties: error } } }] },
    examples: Object.fromEntries(
      bodies.map((value, index) => [`${value.error.code ?? value.error.type}_${index + 1}`, { value }])
    )
  }
}
