import { type CapSpend, rateWindowSeconds, scopeOf } from "../../domain/ApiKey.ts"
import * as Failure from "../../domain/Failure.ts"
import { explainReference, referenceProblems, unusableReference } from "../../domain/Media.ts"
import { quoteModel, type Surface } from "../../domain/Model.ts"
import { fromUsd, type NanoUsd, toUsdText, zero } from "../../domain/Money.ts"
import { joinWords, pluralize } from "../../domain/Wording.ts"
import { internalFailure } from "../../services/requests/RequestEntry.ts"
import type { EndpointKind, ErrorHeaders, ErrorRow, FailureOf, Tag } from "./ErrorRow.ts"

const retryAfter = (seconds: number): ErrorHeaders => ({ "retry-after": String(seconds) })
/** Without this header, official clients would immediately retry a 409 twice. */
const noRetry: ErrorHeaders = { "x-should-retry": "false" }

const modelKindOf: Record<Surface, string> = { chat: "a chat", image: "an image", video: "a video" }

const pathOf: Record<Surface, string> = {
  chat: "/v1/chat/completions",
  image: "/v1/images/generations",
  video: "/v1/videos"
}

const modelHint = ({ elsewhere, suggestions = [] }: Failure.ModelNotFound): string | undefined => {
  if (elsewhere !== undefined) {
    const { id, surface } = elsewhere
    return `${quoteModel(id)} is ${modelKindOf[surface]} model: use ${pathOf[surface]}.`
  }
  return suggestions.length === 0 ? undefined : `Did you mean ${joinWords(suggestions.map(quoteModel), "or")}?`
}

const fundsHint = ({ available, isMinimum, needed }: Failure.InsufficientCredits): string => {
  const quantifier = isMinimum ? "at least" : "up to"
  const needText = needed === undefined ? "" : `The request needs ${quantifier} ${toUsdText(needed)} USD; `
  return `${needText}${toUsdText(available)} USD is available.`
}

const capHint = ({ cap, held, resetsAt, spent }: CapSpend): string => {
  const videos = held > 0n ? `, and ${toUsdText(held)} USD is held for videos` : ""
  const reset = resetsAt === undefined ? "" : ` The limit resets at ${resetsAt.toISOString().replace(".000", "")}.`
  return `${toUsdText(spent)} of ${toUsdText(cap)} USD is spent${videos}.${reset}`
}

/** Adapters set `param` to these fields only if the provider could not read a reference image. */
const isAboutImage = ({ param }: Failure.UpstreamRejected): boolean => param === "messages" || param === "image"

const usd = (text: string): NanoUsd => fromUsd(text) ?? zero
const exampleSpend = { cap: usd("10"), spent: usd("10"), held: zero, resetsAt: new Date("2026-12-01T00:00:00Z") }

/** All errors, ordered by status. docs/errors.md has the same order. */
export const errorTable = {
  InvalidRequest: {
    status: 400,
    message: ({ message }) => message,
    param: ({ param }) => param,
    hint: ({ hint }) => hint,
    endpointKinds: ["generation", "counting"],
    example: () => new Failure.InvalidRequest({ message: "`model` is required.", param: "model" }),
    docs: {
      message: "names the problem",
      action: "change the field in `param`, see [below](#messages-of-400)"
    }
  },
  UpstreamRejected: {
    status: 400,
    message: (failure) => (isAboutImage(failure) ? unusableReference : "Upstream rejected the request."),
    param: ({ param }) => param,
    hint: (failure) => (isAboutImage(failure) ? explainReference(referenceProblems.provider) : undefined),
    endpointKinds: ["generation", "counting"],
    example: () => new Failure.UpstreamRejected({ param: null }),
    docs: [
      { action: "the provider rejected it, for example because the prompt is too long; change the request" },
      {
        failure: () => new Failure.UpstreamRejected({ param: "image" }),
        action: "read the [hint](#reference-images); `param` is `image`, or `messages` for chat requests"
      }
    ]
  },
  ContentRejected: {
    status: 400,
    type: "content_policy_violation",
    message: "Content was rejected by the moderation system.",
    endpointKinds: ["generation", "counting"],
    example: () => new Failure.ContentRejected(),
    docs: { action: "change the content" }
  },
  BodyTooSlow: {
    status: 400,
    message: ({ bytesPerSecond }) => `The request body arrived too slowly: less than ${bytesPerSecond} bytes a second.`,
    headers: { connection: "close" },
    endpointKinds: ["generation", "counting"],
    example: () => new Failure.BodyTooSlow({ bytesPerSecond: 1000 }),
    docs: { action: "retry on a faster connection; the gateway closes this one (`connection: close`)" }
  },
  MissingApiKey: {
    status: 401,
    code: "invalid_api_key",
    message: "Missing API key.",
    endpointKinds: ["key"],
    example: () => new Failure.MissingApiKey(),
    docs: { action: "send a key" }
  },
  InvalidApiKey: {
    status: 401,
    code: "invalid_api_key",
    message: "Invalid API key provided.",
    endpointKinds: ["key"],
    example: () => new Failure.InvalidApiKey(),
    docs: { action: "the key is unknown, revoked or expired. If there is a hint, the organization is suspended" }
  },
  OrganizationSuspended: {
    status: 401,
    code: "invalid_api_key",
    message: "Invalid API key provided.",
    hint: "The organization of this key is suspended.",
    endpointKinds: ["key"],
    example: () => new Failure.OrganizationSuspended()
  },
  NotSignedIn: {
    status: 401,
    code: "not_signed_in",
    message: ({ message }) => message,
    endpointKinds: [],
    example: () => new Failure.NotSignedIn({ message: "Sign in, or send an operator's token." })
  },
  InsufficientCredits: {
    status: 402,
    code: "insufficient_quota",
    message: "Insufficient credits.",
    hint: fundsHint,
    endpointKinds: ["generation", "counting"],
    example: () => new Failure.InsufficientCredits({ needed: usd("0.25"), available: usd("0.01") }),
    docs: { action: "top up; the hint has the amounts" }
  },
  SpendLimitReached: {
    status: 402,
    code: "spend_limit_exceeded",
    message: ({ owner: of = "key", period }) => `This ${of} has reached its ${period} spend limit.`,
    hint: ({ spend }) => spend && capHint(spend),
    endpointKinds: ["generation", "counting"],
    example: () => new Failure.SpendLimitReached({ period: "month", spend: exampleSpend }),
    docs: [
      {
        failure: () => new Failure.SpendLimitReached({ period: "day" }),
        action: "the key's spending cap is reached; other periods are `week`, `month` and `total`"
      },
      {
        failure: () => new Failure.SpendLimitReached({ owner: "organization", period: "day" }),
        action: "the organization's spending cap is reached; see [`GET /credits`](api.md#get-credits)"
      }
    ]
  },
  PaymentDisputed: {
    status: 402,
    code: "payment_disputed",
    message: "Requests are suspended while a payment is disputed.",
    endpointKinds: ["generation", "counting"],
    example: () => new Failure.PaymentDisputed(),
    docs: { action: "wait until the dispute is closed" }
  },
  InsufficientScope: {
    status: 403,
    code: "insufficient_scope",
    message: ({ scope }) => `API key lacks scope: ${scope}`,
    endpointKinds: ["generation", "counting"],
    example: (surface) => new Failure.InsufficientScope({ scope: scopeOf[surface] }),
    docs: { action: "use a key with this scope" }
  },
  AddressBlocked: {
    status: 403,
    code: "access_denied",
    message: "Access denied.",
    endpointKinds: ["generation", "counting", "read", "model", "operator"],
    example: () => new Failure.AddressBlocked(),
    docs: { action: "your address is blocked" }
  },
  ModelNotAllowed: {
    status: 403,
    code: "model_not_allowed",
    message: ({ model }) => `API key may not use the model ${quoteModel(model)}.`,
    param: "model",
    endpointKinds: ["generation", "counting", "model"],
    example: () => new Failure.ModelNotAllowed({ model: "another-model" }),
    docs: {
      failure: () => new Failure.ModelNotAllowed({ model: "<id>" }),
      action: "use a model from `GET /models`"
    }
  },
  InsufficientRole: {
    status: 403,
    code: "insufficient_role",
    message: ({ needed }) => `This requires the role ${needed}.`,
    endpointKinds: ["operator"],
    example: () => new Failure.InsufficientRole({ needed: "owner" })
  },
  ForeignOrigin: {
    status: 403,
    code: "foreign_origin",
    message: "The request comes from another site.",
    endpointKinds: ["operator"],
    example: () => new Failure.ForeignOrigin()
  },
  ModelNotFound: {
    status: 404,
    code: "model_not_found",
    message: ({ model, surface }) => {
      const kindText = surface === undefined ? "" : ` or is not ${modelKindOf[surface]} model`
      return `The model ${quoteModel(model)} does not exist${kindText}.`
    },
    param: "model",
    hint: modelHint,
    endpointKinds: ["generation", "counting", "model"],
    example: (surface) => new Failure.ModelNotFound({ model: "a-modell", surface, suggestions: ["a-model"] }),
    docs: {
      failure: () => new Failure.ModelNotFound({ model: "<id>", surface: "chat" }),
      action: "the model is unknown, disabled, or for another endpoint (`an image`, `a video`); read the hint"
    }
  },
  VideoNotFound: {
    status: 404,
    message: "No such video.",
    endpointKinds: [],
    example: () => new Failure.VideoNotFound(),
    docs: { action: "your organization has no such video" }
  },
  RequestNotFound: {
    status: 404,
    message: "No such request.",
    endpointKinds: [],
    example: () => new Failure.RequestNotFound(),
    docs: { action: "your organization has no such request" }
  },
  UnknownEndpoint: {
    status: 404,
    code: "unknown_endpoint",
    message: "Unknown endpoint.",
    endpointKinds: [],
    example: () => new Failure.UnknownEndpoint(),
    docs: {
      action: "the path or method is wrong; check the base URL"
    }
  },
  MisspeltPath: {
    status: 404,
    code: "unknown_endpoint",
    message: "Unknown endpoint.",
    hint: ({ suggestion }) => `Did you mean ${suggestion}?`,
    endpointKinds: [],
    example: () => new Failure.MisspeltPath({ suggestion: "/v1/chat/completions" })
  },
  UnknownMethod: {
    status: 404,
    code: "unknown_endpoint",
    message: "Unknown endpoint.",
    hint: ({ methods, path }) => `${path} accepts ${joinWords(methods, "and")}.`,
    endpointKinds: [],
    example: () => new Failure.UnknownMethod({ path: "/v1/chat/completions", methods: ["POST"] })
  },
  NotFound: {
    status: 404,
    code: "not_found",
    message: ({ message }) => message,
    endpointKinds: [],
    example: () => new Failure.NotFound({ message: "There is no organization acme." })
  },
  VideoNotFinished: {
    status: 409,
    code: "video_not_finished",
    message: "You can delete a video only after it is completed or failed.",
    headers: noRetry,
    endpointKinds: [],
    example: () => new Failure.VideoNotFinished(),
    docs: {
      action: "wait; `x-should-retry: false`"
    }
  },
  IdempotencyConflict: {
    status: 409,
    code: "idempotency_conflict",
    message: "A request with the same `Idempotency-Key` is still in flight.",
    headers: noRetry,
    endpointKinds: [],
    example: () => new Failure.IdempotencyConflict(),
    docs: {
      action: "wait; `x-should-retry: false`"
    }
  },
  Conflict: {
    status: 409,
    code: "conflict",
    message: ({ message }) => message,
    param: ({ param }) => param,
    endpointKinds: ["adminChange"],
    example: () => new Failure.Conflict({ message: "An organization named acme already exists.", param: "name" })
  },
  BodyTooLarge: {
    status: 413,
    code: "request_too_large",
    message: ({ limitBytes }) => `The request body is larger than ${limitBytes} bytes.`,
    endpointKinds: ["generation", "counting"],
    example: () => new Failure.BodyTooLarge({ limitBytes: 33_554_432 }),
    docs: { action: "see [Limits](limits.md)" }
  },
  RateLimited: {
    status: 429,
    code: "rate_limit_exceeded",
    message: "Rate limit exceeded.",
    hint: ({ limit }) => `The limit of this key is ${pluralize(limit, "request")} per minute.`,
    // The current window lasts at most this long.
    headers: retryAfter(rateWindowSeconds),
    endpointKinds: ["generation", "counting"],
    example: () => new Failure.RateLimited({ limit: 600 }),
    docs: {
      action: "the key exceeded its requests per minute; wait, `retry-after: 60`"
    }
  },
  TokensLimited: {
    status: 429,
    code: "tokens_limit_exceeded",
    message: ({ limit }) => `Rate limit exceeded: ${limit} tokens per minute for this key.`,
    headers: ({ retryAfterSeconds }) => retryAfter(retryAfterSeconds),
    endpointKinds: ["generation"],
    example: () => new Failure.TokensLimited({ limit: 100_000, retryAfterSeconds: 42 }),
    docs: {
      action:
        "wait, for example for `retry-after: 42` seconds, or lower [`max_tokens`](limits.md#tokens-and-concurrent-requests)"
    }
  },
  ConcurrencyLimited: {
    status: 429,
    code: "concurrency_limit_exceeded",
    message: ({ limit }) => `Too many requests at once for this key; the limit is ${limit}.`,
    headers: retryAfter(1),
    endpointKinds: ["generation"],
    example: () => new Failure.ConcurrencyLimited({ limit: 5 }),
    docs: {
      action: "wait for running requests and videos; `retry-after: 1`"
    }
  },
  SignInLimited: {
    status: 429,
    code: "rate_limit_exceeded",
    message: "Too many failed sign-in attempts. Try again later.",
    headers: ({ retryAfterSeconds }) => retryAfter(retryAfterSeconds),
    endpointKinds: [],
    example: () => new Failure.SignInLimited({ retryAfterSeconds: 60 })
  },
  ChangesLimited: {
    status: 429,
    code: "rate_limit_exceeded",
    message: ({ limit }) => `An organization's members can make at most ${limit} changes per minute.`,
    headers: ({ retryAfterSeconds }) => retryAfter(retryAfterSeconds),
    endpointKinds: ["adminChange"],
    example: () => new Failure.ChangesLimited({ limit: 60, retryAfterSeconds: 42 })
  },
  SettleFailed: {
    status: 500,
    code: "internal_error",
    message: internalFailure.message,
    // A retry may succeed when the database is available again.
    headers: retryAfter(5),
    endpointKinds: ["generation", "counting", "read", "model"],
    example: () => new Failure.SettleFailed(),
    docs: { action: "retry; `retry-after: 5` if the database is unavailable" }
  },
  UpstreamFailed: {
    status: 502,
    code: "upstream_error",
    message: "The upstream provider returned an error.",
    endpointKinds: ["generation"],
    example: () => new Failure.UpstreamFailed(),
    docs: {
      action: "the only provider failed; retry"
    }
  },
  UpstreamAuthFailed: {
    status: 502,
    code: "upstream_error",
    message: "Upstream authentication failed.",
    endpointKinds: ["generation"],
    example: () => new Failure.UpstreamAuthFailed(),
    docs: { action: "retry later" }
  },
  GatewayBusy: {
    status: 503,
    message: "The gateway is busy; retry later.",
    headers: retryAfter(5),
    endpointKinds: ["generation", "counting"],
    example: () => new Failure.GatewayBusy(),
    docs: {
      action: "retry; `retry-after: 5`. See [Limits](limits.md)"
    }
  },
  AllProvidersFailed: {
    status: 503,
    code: "no_provider_available",
    message: ({ provider, status }) => `All providers failed (last: ${provider} ${status}).`,
    endpointKinds: ["generation", "counting"],
    example: () => new Failure.AllProvidersFailed({ provider: "openai", status: 503 }),
    docs: {
      failure: () => new Failure.AllProvidersFailed({ provider: "<provider>", status: 503 }),
      action: "retry, or use another model"
    }
  },
  NoHealthyProvider: {
    status: 503,
    code: "no_provider_available",
    message: "No healthy provider is available for this model.",
    endpointKinds: ["generation", "counting"],
    example: () => new Failure.NoHealthyProvider(),
    docs: {
      action: "retry, or use another model"
    }
  },
  Aborted: {
    status: 503,
    message: "The gateway is restarting; retry.",
    // A restart takes a few seconds. Another instance may serve a retry sooner.
    headers: retryAfter(5),
    endpointKinds: ["generation", "counting"],
    example: () => new Failure.Aborted(),
    docs: { action: "retry; `retry-after: 5`" }
  },
  TimedOut: {
    status: 504,
    code: "timeout",
    message: "The request exceeded the allowed time.",
    endpointKinds: ["generation"],
    example: () => new Failure.TimedOut(),
    docs: { action: "retry, stream, or request a shorter response" }
  }
} as const satisfies { readonly [T in Tag]: ErrorRow<FailureOf<T>> }
type ErrorTable = typeof errorTable

type CodeOf<Row> = Row extends { readonly code: infer Code extends string } ? Code : never
export type TableCode = { [T in Tag]: CodeOf<ErrorTable[T]> }[Tag]

/** The tags of the failures that the table lists for a kind of endpoint. */
export type TagAt<Kind extends EndpointKind> = {
  [T in Tag]: Kind extends ErrorTable[T]["endpointKinds"][number] ? T : never
}[Tag]
export type StatusOf<T extends Tag> = ErrorTable[T]["status"]
