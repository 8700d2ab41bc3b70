import { Effect, Predicate } from "effect"
import * as Fake from "../../harness/upstream/FakeUpstream.ts"
import * as JobHost from "../jobs/JobHost.ts"

/** The host's operations. */
export type Step = "submit" | "poll" | "cancel" | "download"

const problem = (status: number, title: string, detail: string) => ({ title, detail, status })

/** Replicate's error format. */
export const refusals = {
  limit: Fake.json(429, {
    ...problem(429, "Too many requests", "Request was throttled. Your rate limit resets in ~7s."),
    retry_after: 7
  }),
  funds: Fake.json(
    402,
    problem(
      402,
      "Insufficient credit",
      "You have insufficient credit to run this model. Go to https://replicate.com/account/billing to buy some."
    )
  ),
  key: Fake.json(401, problem(401, "Unauthenticated", "You did not pass a valid authentication token")),
  request: Fake.json(422, {
    ...problem(422, "Input validation failed", "- input.duration: duration must be one of the following: 5, 10\n"),
    invalid_fields: [{ type: "enum", field: "input.duration", description: "must be one of the following: 5, 10" }]
  }),
  image: Fake.json(422, {
    ...problem(422, "Input validation failed", "- input.image: Does not match format 'uri'\n"),
    invalid_fields: [{ type: "format", field: "input.image", description: "Does not match format 'uri'" }]
  }),
  moderation: Fake.json(422, problem(422, "Unprocessable", "The input was flagged as sensitive. (E005)")),
  server: Fake.json(500, problem(500, "Internal server error", "Something went wrong")),
  missing: Fake.json(404, problem(404, "Not found", "The requested resource could not be found.")),
  page: Fake.text(502, "text/html", "<html><body>Bad gateway</body></html>"),
  garbage: Fake.text(200, "application/json", '{"id":"x","status":"succ'),
  empty: Fake.text(200, "application/json", ""),
  "cut answer": Fake.steps({ type: "application/json" }, '{"id":', Fake.cut)
} as const

export interface Prediction {
  /** `owner/name` or a version id, as in the official client. */
  readonly model: string
  readonly input: Readonly<Record<string, unknown>>
  readonly credential: string | undefined
  readonly prefer: string | undefined
}

/** Serves one prediction at a time. Its URLs contain Replicate's own host, like behind a proxy. */
export interface ReplicateHost extends JobHost.JobHost<Step> {
  /** Sets the state of the prediction. */
  readonly stands: (status: string) => Effect.Effect<void>
  readonly succeeds: (output: unknown) => Effect.Effect<void>
  readonly fails: (error: unknown) => Effect.Effect<void>
  /** Sets the URLs of the next predictions. */
  readonly names: (urls: Readonly<Record<string, unknown>>) => Effect.Effect<void>
}

const stepOf = ({ method, path }: Fake.Received): Step => {
  if (/^\/v1\/(models\/[^/]+\/[^/]+\/)?predictions$/.test(path)) return "submit"
  if (method === "POST") return "cancel"
  return path.startsWith("/v1/predictions/") ? "poll" : "download"
}

const single = (header: string | ReadonlyArray<string> | undefined) =>
  typeof header === "string" ? header : header?.[0]

/** Reads the request that creates a prediction. */
export const predictionOf = ({ body, headers, path }: Fake.Received): Prediction => {
  const { input, version } = Predicate.isRecord(body) ? body : {}
  const [, model] = /^\/v1\/models\/(.+)\/predictions$/.exec(path) ?? []
  return {
    model: model ?? String(version),
    input: Predicate.isRecord(input) ? input : {},
    credential: headers.authorization,
    prefer: single(headers.prefer)
  }
}

export const make = Effect.gen(function* () {
  let state: Readonly<Record<string, unknown>> = { status: "starting", output: null, error: null }
  let urls: Readonly<Record<string, unknown>> = {}
  let created: Readonly<Record<string, unknown>> = {}
  let predictions = 0

  const now = () => {
    const own = `https://api.replicate.com/v1/predictions/${String(created.id)}`
    return {
      ...created,
      ...state,
      logs: "",
      data_removed: false,
      source: "api",
      created_at: "2026-10-06T09:00:00.000Z",
      urls: { get: own, cancel: `${own}/cancel`, web: "https://replicate.com/p/x", ...urls }
    }
  }

  const create = (received: Fake.Received) => {
    const { input, model } = predictionOf(received)
    const id = `p${String(++predictions).padStart(25, "0")}`
    created = { id, model, version: "hidden", input }
  }

  const usual: Readonly<Record<Step, Fake.Reply>> = {
    submit: (response, received) => {
      create(received)
      return Fake.json(201, now())(response, received)
    },
    poll: (response, received) => Fake.json(200, now())(response, received),
    cancel: (response, received) => {
      if (state.status === "starting" || state.status === "processing") state = { ...state, status: "canceled" }
      return Fake.json(200, now())(response, received)
    },
    download: Fake.json(404, { detail: "no such file" })
  }

  const becomes = (next: Readonly<Record<string, unknown>>) =>
    Effect.sync(() => {
      state = { output: null, error: null, ...next }
    })

  const steps = yield* JobHost.make(stepOf, usual)
  const host: ReplicateHost = {
    ...steps,
    stands: (status) => becomes({ status }),
    succeeds: (output) => becomes({ status: "succeeded", output, completed_at: "2026-10-06T09:00:09.000Z" }),
    fails: (error) => becomes({ status: "failed", error, completed_at: "2026-10-06T09:00:09.000Z" }),
    names: (next) =>
      Effect.sync(() => {
        urls = next
      })
  }
  return host
})
