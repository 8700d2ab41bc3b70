import { HttpApi } from "@effect/platform"
import { SchemaAST as AST, Option, Schema } from "effect"
import * as Failure from "../../../src/domain/Failure.ts"
import { NanoUsd, zero } from "../../../src/domain/Money.ts"
import { Api } from "../../../src/http/Api.ts"
import { AdminApi } from "../../../src/http/admin/AdminApi.ts"
import { Envelope, encodeBrokenStream, internalError, toWire } from "../../../src/http/errors/ErrorMessages.ts"
import { badRequest, envelopeOf, type Refusal, refusals } from "../../harness/client/HttpCalls.ts"
import { assert, describe, it } from "../../harness/It.ts"

type Row = readonly [failure: Failure.Failure, refusal: Refusal]

const short = (hint: string): Refusal => ({
  status: 402,
  type: "insufficient_quota",
  code: "insufficient_quota",
  message: "Insufficient credits.",
  hint
})
const spend = { cap: NanoUsd(10_000_000_000n), spent: NanoUsd(10_000_000_000n), held: zero }
const capped = (period: string, hint?: string, of = "key"): Refusal => ({
  status: 402,
  type: "insufficient_quota",
  code: "spend_limit_exceeded",
  message: `This ${of} has reached its ${period} spend limit.`,
  hint
})

const limited = (code: string, message: string): Refusal => ({ status: 429, type: "rate_limit_error", code, message })
const unavailable = (message: string): Refusal => ({ status: 503, type: "service_unavailable", code: null, message })

const rows: { readonly [Tag in Failure.Failure["_tag"]]: ReadonlyArray<Row> } = {
  InvalidRequest: [badRequest("`model` is required.", "model"), badRequest("The body is not valid JSON.")].map(
    (refusal) => [new Failure.InvalidRequest({ message: refusal.message, param: refusal.param ?? null }), refusal]
  ),
  UpstreamRejected: [
    [new Failure.UpstreamRejected({ param: null }), refusals.rejected],
    [new Failure.UpstreamRejected({ param: "temperature" }), { ...refusals.rejected, param: "temperature" }],
    ...["messages", "image"].map(
      (param): Row => [
        new Failure.UpstreamRejected({ param }),
        refusals.unusable("The image could not be used by the provider.", param)
      ]
    )
  ],
  ContentRejected: [[new Failure.ContentRejected(), refusals.moderated]],
  MissingApiKey: [[new Failure.MissingApiKey(), refusals.missingKey]],
  InvalidApiKey: [[new Failure.InvalidApiKey(), refusals.invalidKey]],
  OrganizationSuspended: [[new Failure.OrganizationSuspended(), refusals.suspended]],
  InsufficientCredits: [
    [
      new Failure.InsufficientCredits({ needed: NanoUsd(250_000_000n), available: 10_000_000n }),
      short("The request needs up to 0.25 USD; 0.01 USD is available.")
    ],
    [
      new Failure.InsufficientCredits({ needed: NanoUsd(1n), available: -5_000_000_000n, isMinimum: true }),
      short("The request needs at least 0.000000001 USD; -5 USD is available.")
    ],
    [new Failure.InsufficientCredits({ needed: undefined, available: 0n }), short("0 USD is available.")]
  ],
  SpendLimitReached: [
    ...(["day", "week", "month", "total"] as const).map(
      (period): Row => [new Failure.SpendLimitReached({ period }), capped(period)]
    ),
    ...(["day", "week", "month", "total"] as const).map(
      (period): Row => [
        new Failure.SpendLimitReached({ owner: "organization", period, spend: { ...spend, resetsAt: undefined } }),
        capped(period, "10 of 10 USD is spent.", "organization")
      ]
    ),
    [
      new Failure.SpendLimitReached({
        period: "month",
        spend: { ...spend, resetsAt: new Date("2026-12-01T00:00:00Z") }
      }),
      capped("month", "10 of 10 USD is spent. The limit resets at 2026-12-01T00:00:00Z.")
    ],
    [
      new Failure.SpendLimitReached({
        period: "total",
        spend: { ...spend, held: NanoUsd(500_000_000n), resetsAt: undefined }
      }),
      capped("total", "10 of 10 USD is spent, and 0.5 USD is held for videos.")
    ]
  ],
  PaymentDisputed: [
    [
      new Failure.PaymentDisputed(),
      {
        status: 402,
        type: "insufficient_quota",
        code: "payment_disputed",
        message: "Requests are suspended while a payment is disputed."
      }
    ]
  ],
  InsufficientScope: (["chat", "images", "videos"] as const).map((scope) => [
    new Failure.InsufficientScope({ scope }),
    refusals.scopeOf(scope)
  ]),
  AddressBlocked: [[new Failure.AddressBlocked(), refusals.denied]],
  ModelNotFound: [
    ...(["chat", "image", "video"] as const).map(
      (surface): Row => [
        new Failure.ModelNotFound({ model: "x-1", surface }),
        refusals.noModel("x-1", surface === "image" ? "an image" : `a ${surface}`)
      ]
    ),
    [
      new Failure.ModelNotFound({ model: "v/x-1", surface: "chat", elsewhere: { id: "x-1", surface: "video" } }),
      refusals.noModel("v/x-1", "a chat", "`x-1` is a video model: use /v1/videos.")
    ],
    [
      new Failure.ModelNotFound({ model: "x-1", surface: "chat", suggestions: ["x-2", "x-3", "x-4"] }),
      refusals.noModel("x-1", "a chat", "Did you mean `x-2`, `x-3` or `x-4`?")
    ]
  ],
  ModelNotAllowed: [[new Failure.ModelNotAllowed({ model: "x-1" }), refusals.notAllowed("x-1")]],
  VideoNotFound: [[new Failure.VideoNotFound(), refusals.noVideo]],
  RequestNotFound: [[new Failure.RequestNotFound(), refusals.noRequest]],
  VideoNotFinished: [[new Failure.VideoNotFinished(), refusals.notFinished]],
  UnknownEndpoint: [[new Failure.UnknownEndpoint(), refusals.noEndpoint]],
  MisspeltPath: [[new Failure.MisspeltPath({ suggestion: "/v1/models" }), refusals.meantPath("/v1/models")]],
  UnknownMethod: [
    [
      new Failure.UnknownMethod({ path: "/v1/videos", methods: ["GET", "POST"] }),
      refusals.wrongMethod("/v1/videos", "GET and POST")
    ]
  ],
  BodyTooLarge: [[new Failure.BodyTooLarge({ limitBytes: 1024 }), refusals.tooLarge(1024)]],
  BodyTooSlow: [
    [
      new Failure.BodyTooSlow({ bytesPerSecond: 1000 }),
      badRequest("The request body arrived too slowly: less than 1000 bytes a second.")
    ]
  ],
  GatewayBusy: [[new Failure.GatewayBusy(), unavailable("The gateway is busy; retry later.")]],
  IdempotencyConflict: [[new Failure.IdempotencyConflict(), refusals.conflict]],
  RateLimited: [
    [
      new Failure.RateLimited({ limit: 600 }),
      { ...refusals.limited, hint: "The limit of this key is 600 requests per minute." }
    ]
  ],
  TokensLimited: [
    [
      new Failure.TokensLimited({ limit: 90_000, retryAfterSeconds: 42 }),
      limited("tokens_limit_exceeded", "Rate limit exceeded: 90000 tokens per minute for this key.")
    ]
  ],
  ConcurrencyLimited: [
    [
      new Failure.ConcurrencyLimited({ limit: 5 }),
      limited("concurrency_limit_exceeded", "Too many requests at once for this key; the limit is 5.")
    ]
  ],
  NotSignedIn: [
    [
      new Failure.NotSignedIn({ message: "No." }),
      { status: 401, type: "authentication_error", code: "not_signed_in", message: "No." }
    ]
  ],
  InsufficientRole: [
    [
      new Failure.InsufficientRole({ needed: "write" }),
      { status: 403, type: "permission_error", code: "insufficient_role", message: "This requires the role write." }
    ]
  ],
  ForeignOrigin: [
    [
      new Failure.ForeignOrigin(),
      { status: 403, type: "permission_error", code: "foreign_origin", message: "The request comes from another site." }
    ]
  ],
  SignInLimited: [
    [
      new Failure.SignInLimited({ retryAfterSeconds: 7 }),
      {
        status: 429,
        type: "rate_limit_error",
        code: "rate_limit_exceeded",
        message: "Too many failed sign-in attempts. Try again later.",
        retryAfter: "7"
      }
    ]
  ],
  ChangesLimited: [
    [
      new Failure.ChangesLimited({ limit: 60, retryAfterSeconds: 42 }),
      {
        status: 429,
        type: "rate_limit_error",
        code: "rate_limit_exceeded",
        message: "An organization's members can make at most 60 changes per minute.",
        retryAfter: "42"
      }
    ]
  ],
  NotFound: [
    [
      new Failure.NotFound({ message: "None." }),
      { status: 404, type: "not_found_error", code: "not_found", message: "None." }
    ]
  ],
  Conflict: [
    [
      new Failure.Conflict({ message: "Taken.", param: "name" }),
      { status: 409, type: "invalid_request_error", code: "conflict", message: "Taken.", param: "name" }
    ]
  ],
  SettleFailed: [[new Failure.SettleFailed(), refusals.internal]],
  UpstreamFailed: [[new Failure.UpstreamFailed(), refusals.upstream]],
  UpstreamAuthFailed: [[new Failure.UpstreamAuthFailed(), refusals.upstreamAuth]],
  AllProvidersFailed: ([429, 503, "network"] as const).map((status) => [
    new Failure.AllProvidersFailed({ provider: "google", status }),
    refusals.allFailed("google", status)
  ]),
  NoHealthyProvider: [[new Failure.NoHealthyProvider(), refusals.noProvider]],
  Aborted: [[new Failure.Aborted(), unavailable("The gateway is restarting; retry.")]],
  TimedOut: [[new Failure.TimedOut(), refusals.timedOut]]
}

const all = Object.values(rows).flat()

/** What these say beside the envelope; the rest says nothing. */
const headers: Readonly<Partial<Record<Failure.Failure["_tag"], object>>> = {
  BodyTooSlow: { connection: "close" },
  GatewayBusy: { "retry-after": "5" },
  IdempotencyConflict: { "x-should-retry": "false" },
  VideoNotFinished: { "x-should-retry": "false" },
  RateLimited: { "retry-after": "60" },
  TokensLimited: { "retry-after": "42" },
  ConcurrencyLimited: { "retry-after": "1" },
  SignInLimited: { "retry-after": "7" },
  ChangesLimited: { "retry-after": "42" },
  Aborted: { "retry-after": "5" },
  SettleFailed: { "retry-after": "5" }
}

describe("the wire form of a failure", () => {
  it.each(all.map((row) => [row[0]._tag, row[1].status, row] as const))("of type %s has status %i", (_, __, row) => {
    const [failure, refusal] = row
    const wire = toWire(failure)
    assert.strictEqual(wire.status, refusal.status)
    assert.deepStrictEqual<unknown>(wire.body, envelopeOf(refusal))
    assert.deepStrictEqual(wire.headers, headers[failure._tag])
    assert.isTrue(Schema.is(Envelope)(wire.body))
  })

  it("has no code on any 400 and one on everything else, save a missing video and lack of room", () => {
    const codeless: ReadonlySet<string> = new Set(["RequestNotFound", "VideoNotFound", "Aborted", "GatewayBusy"])
    for (const [failure] of all) {
      const { body, status } = toWire(failure)
      assert.strictEqual(body.error.code === null, status === 400 || codeless.has(failure._tag), failure._tag)
    }
  })

  it("carries a host's reason beside the body, which never shows it", () => {
    const why = { reason: "prompt is too long", reasonCode: "context_length_exceeded" } as const
    const rejected = new Failure.UpstreamRejected({ param: null })
    assert.deepStrictEqual(toWire(new Failure.UpstreamRejected({ param: null, ...why })), {
      ...toWire(rejected),
      ...why
    })
  })

  it("is always the same for an internal error", () => {
    assert.deepStrictEqual(internalError, {
      status: 500,
      body: { error: { message: "Internal server error.", type: "api_error", param: null, code: "internal_error" } }
    })
  })
})

describe("the error of a broken stream", () => {
  const upstream = toWire(new Failure.UpstreamFailed()).body

  it("hides the reason of every failure after output", () => {
    for (const failure of [
      new Failure.UpstreamFailed(),
      new Failure.UpstreamAuthFailed(),
      new Failure.UpstreamRejected({ param: "messages" }),
      new Failure.ContentRejected(),
      new Failure.AllProvidersFailed({ provider: "google", status: 503 }),
      new Failure.NoHealthyProvider(),
      new Failure.Aborted()
    ]) {
      assert.deepStrictEqual(encodeBrokenStream(failure), upstream, failure._tag)
    }
  })

  it("names a timeout", () => {
    assert.deepStrictEqual(encodeBrokenStream(new Failure.TimedOut()), toWire(new Failure.TimedOut()).body)
  })

  it("does not blame the provider for a failed charge", () => {
    assert.deepStrictEqual(encodeBrokenStream(new Failure.SettleFailed()), internalError.body)
  })
})

describe("the published errors", () => {
  const declared: Array<{ readonly status: number; readonly schema: Schema.Schema<unknown, unknown> }> = []
  const onEndpoint = ({
    errors
  }: {
    readonly errors: ReadonlyMap<number, { readonly ast: Option.Option<AST.AST> }>
  }) => {
    for (const [status, { ast }] of errors) {
      const members = Option.match(ast, { onNone: () => [], onSome: (ast) => (AST.isUnion(ast) ? ast.types : [ast]) })
      for (const member of members) declared.push({ status, schema: Schema.make<unknown, unknown>(member) })
    }
  }
  HttpApi.reflect(Api, { onGroup: () => {}, onEndpoint })
  HttpApi.reflect(AdminApi, { onGroup: () => {}, onEndpoint })
  const unrouted: ReadonlySet<string> = new Set(["UnknownEndpoint", "MisspeltPath", "UnknownMethod"])
  const sent = all.map(([failure]) => ({ tag: failure._tag, failure })).filter(({ tag }) => !unrouted.has(tag))

  it.each(sent)("describe $tag as it is on the wire", ({ failure }) => {
    const wire = toWire(failure)
    const responses = declared.filter(({ schema }) => Schema.is(Schema.typeSchema(schema))(failure))
    assert.isNotEmpty(responses)
    for (const { schema, status } of responses) {
      assert.strictEqual(status, wire.status)
      assert.deepStrictEqual(Schema.encodeUnknownSync(schema)(failure), wire.body)
    }
  })
})
