import { HttpApiSchema } from "@effect/platform"
import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import * as Failure from "../../../src/domain/Failure.ts"
import * as Errors from "../../../src/http/errors/Schemas.ts"
import { brokenStream, Envelope, internalError, toWire } from "../../../src/http/errors/Wire.ts"
import { Authenticated } from "../../../src/http/schema/Headers.ts"

type Row = readonly [
  failure: Failure.Failure,
  status: number,
  type: string,
  code: string | null,
  message: string,
  param?: string | null
]

const rows: { readonly [Tag in Failure.Failure["_tag"]]: ReadonlyArray<Row> } = {
  InvalidRequest: [
    [
      new Failure.InvalidRequest({ message: "`model` is required.", param: "model" }),
      400,
      "invalid_request_error",
      null,
      "`model` is required.",
      "model"
    ],
    [
      new Failure.InvalidRequest({ message: "The body is not valid JSON.", param: null }),
      400,
      "invalid_request_error",
      null,
      "The body is not valid JSON."
    ]
  ],
  UpstreamRejected: [
    [
      new Failure.UpstreamRejected({ param: null }),
      400,
      "invalid_request_error",
      null,
      "Upstream rejected the request."
    ],
    [
      new Failure.UpstreamRejected({ param: "temperature" }),
      400,
      "invalid_request_error",
      null,
      "Upstream rejected the request.",
      "temperature"
    ],
    [
      new Failure.UpstreamRejected({ param: "messages" }),
      400,
      "invalid_request_error",
      null,
      "Failed to process the reference image.",
      "messages"
    ],
    [
      new Failure.UpstreamRejected({ param: "image" }),
      400,
      "invalid_request_error",
      null,
      "Failed to process the reference image.",
      "image"
    ]
  ],
  ContentRejected: [
    [
      new Failure.ContentRejected(),
      400,
      "content_policy_violation",
      null,
      "Content was rejected by the moderation system."
    ]
  ],
  MissingApiKey: [[new Failure.MissingApiKey(), 401, "authentication_error", "invalid_api_key", "Missing API key."]],
  InvalidApiKey: [
    [new Failure.InvalidApiKey(), 401, "authentication_error", "invalid_api_key", "Invalid API key provided."]
  ],
  InsufficientCredits: [
    [new Failure.InsufficientCredits(), 402, "insufficient_quota", "insufficient_quota", "Insufficient credits."]
  ],
  SpendLimitReached: (["day", "week", "month", "total"] as const).map((period) => [
    new Failure.SpendLimitReached({ period }),
    402,
    "insufficient_quota",
    "spend_limit_exceeded",
    `This key has reached its ${period} spend limit.`
  ]),
  InsufficientScope: (["chat", "images", "videos"] as const).map((scope) => [
    new Failure.InsufficientScope({ scope }),
    403,
    "permission_error",
    "insufficient_scope",
    `API key lacks scope: ${scope}`
  ]),
  AddressBlocked: [[new Failure.AddressBlocked(), 403, "permission_error", "access_denied", "Access denied."]],
  ModelNotFound: (
    [
      ["chat", "is not a chat model."],
      ["image", "is not an image model."],
      ["video", "is not a video model."]
    ] as const
  ).map(([surface, end]) => [
    new Failure.ModelNotFound({ model: "x-1", surface }),
    404,
    "not_found_error",
    "model_not_found",
    `The model \`x-1\` does not exist or ${end}`,
    "model"
  ]),
  VideoNotFound: [[new Failure.VideoNotFound(), 404, "not_found_error", null, "No such video."]],
  UnknownEndpoint: [[new Failure.UnknownEndpoint(), 404, "not_found_error", "unknown_endpoint", "Unknown endpoint."]],
  BodyTooLarge: [
    [
      new Failure.BodyTooLarge({ limitBytes: 1024 }),
      413,
      "invalid_request_error",
      "request_too_large",
      "The request body is larger than 1024 bytes."
    ]
  ],
  BodyTooSlow: [
    [
      new Failure.BodyTooSlow({ bytesPerSecond: 1000 }),
      400,
      "invalid_request_error",
      null,
      "The request body arrived too slowly: less than 1000 bytes a second."
    ]
  ],
  GatewayBusy: [[new Failure.GatewayBusy(), 503, "service_unavailable", null, "The gateway is busy; retry later."]],
  IdempotencyConflict: [
    [
      new Failure.IdempotencyConflict(),
      409,
      "invalid_request_error",
      "idempotency_conflict",
      "A request with the same `Idempotency-Key` is still in flight."
    ]
  ],
  RateLimited: [[new Failure.RateLimited(), 429, "rate_limit_error", "rate_limit_exceeded", "Rate limit exceeded."]],
  SettleFailed: [[new Failure.SettleFailed(), 500, "api_error", "internal_error", "Internal server error."]],
  UpstreamFailed: [
    [new Failure.UpstreamFailed(), 502, "api_error", "upstream_error", "The upstream provider returned an error."]
  ],
  UpstreamAuthFailed: [
    [new Failure.UpstreamAuthFailed(), 502, "api_error", "upstream_error", "Upstream authentication failed."]
  ],
  AllProvidersFailed: ([429, 503, "network"] as const).map((status) => [
    new Failure.AllProvidersFailed({ provider: "google", status }),
    503,
    "service_unavailable",
    "no_provider_available",
    `All providers failed (last: google ${status}).`
  ]),
  NoHealthyProvider: [
    [
      new Failure.NoHealthyProvider(),
      503,
      "service_unavailable",
      "no_provider_available",
      "No healthy provider is available for this model."
    ]
  ],
  Aborted: [[new Failure.Aborted(), 503, "service_unavailable", null, "The gateway is restarting; retry."]],
  TimedOut: [[new Failure.TimedOut(), 504, "api_error", "timeout", "The request exceeded the allowed time."]]
}

const all = Object.values(rows).flat()

/** What these say beside the envelope; the rest says nothing. */
const headers: Readonly<Partial<Record<Failure.Failure["_tag"], object>>> = {
  BodyTooSlow: { connection: "close" },
  GatewayBusy: { "retry-after": "5" },
  IdempotencyConflict: { "x-should-retry": "false" },
  RateLimited: { "retry-after": "60" },
  Aborted: { "retry-after": "5" },
  SettleFailed: { "retry-after": "5" }
}

describe("toWire", () => {
  it.each(all.map((row) => [row[0]._tag, row[1], row] as const))("%s is %i", (_, __, row) => {
    const [failure, status, type, code, message, param = null] = row
    const wire = toWire(failure)
    assert.strictEqual(wire.status, status)
    assert.deepStrictEqual(wire.body, { error: { message, type, param, code } })
    assert.deepStrictEqual(wire.headers, headers[failure._tag])
    assert.isTrue(Schema.is(Envelope)(wire.body))
  })

  it("has no code on any 400 and one on everything else, save a missing video and lack of room", () => {
    const codeless: ReadonlySet<string> = new Set(["VideoNotFound", "Aborted", "GatewayBusy"])
    for (const [failure] of all) {
      const { body, status } = toWire(failure)
      assert.strictEqual(body.error.code === null, status === 400 || codeless.has(failure._tag), failure._tag)
    }
  })

  it("says the same of everything it does not know", () => {
    assert.deepStrictEqual(internalError, {
      status: 500,
      body: { error: { message: "Internal server error.", type: "api_error", param: null, code: "internal_error" } }
    })
  })
})

describe("brokenStream", () => {
  const upstream = {
    error: {
      message: "The upstream provider returned an error.",
      type: "api_error",
      param: null,
      code: "upstream_error"
    }
  } as const

  it("tells a client with output only that the stream broke", () => {
    for (const failure of [
      new Failure.UpstreamFailed(),
      new Failure.UpstreamAuthFailed(),
      new Failure.UpstreamRejected({ param: "messages" }),
      new Failure.ContentRejected(),
      new Failure.AllProvidersFailed({ provider: "google", status: 503 }),
      new Failure.NoHealthyProvider(),
      new Failure.Aborted()
    ]) {
      assert.deepStrictEqual(brokenStream(failure), upstream, failure._tag)
    }
  })

  it("or that it ran out of time", () => {
    assert.deepStrictEqual(brokenStream(new Failure.TimedOut()), toWire(new Failure.TimedOut()).body)
  })

  it("and does not blame the provider for the gateway's own books", () => {
    assert.deepStrictEqual(brokenStream(new Failure.SettleFailed()), internalError.body)
  })
})

describe("the contract's errors", () => {
  const declared: ReadonlyArray<Schema.Schema.AnyNoContext> = [
    Authenticated.failure,
    ...Errors.GenerationErrors.members,
    ...Errors.ReadErrors.members,
    Errors.Conflict,
    Errors.NoSuchVideo,
    Errors.NotCompleted
  ]
  const sent = all.map(([failure]) => ({ tag: failure._tag, failure })).filter(({ tag }) => tag !== "UnknownEndpoint")

  it.each(sent)("encode $tag as it is on the wire", ({ failure }) => {
    const wire = toWire(failure)
    const schemas = declared.filter((schema) => Schema.is(Schema.typeSchema(schema))(failure))
    assert.isNotEmpty(schemas)
    for (const schema of schemas) {
      assert.strictEqual(HttpApiSchema.getStatusErrorAST(schema.ast), wire.status)
      assert.deepStrictEqual(Schema.encodeUnknownSync(schema)(failure), wire.body)
    }
  })
})
