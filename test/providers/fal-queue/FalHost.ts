import { Effect, Predicate } from "effect"
import * as Fake from "../../harness/upstream/FakeUpstream.ts"
import * as JobHost from "../jobs/JobHost.ts"

/** The host's operations. */
export type Step = "submit" | "poll" | "result" | "cancel" | "download"

/** fal's error format. */
export const refusals = {
  limit: Fake.json(429, { detail: "Too many requests" }, { "retry-after": "7" }),
  funds: Fake.json(403, { detail: "User is locked. Reason: Exhausted balance. Top up your balance." }),
  key: Fake.json(401, { detail: "Invalid token" }),
  request: Fake.json(422, { detail: [{ loc: ["body", "prompt"], msg: "Too long", type: "string_too_long" }] }),
  image: Fake.json(422, { detail: [{ loc: ["body", "image_url"], msg: "No image", type: "image_load_error" }] }),
  moderation: Fake.json(
    422,
    { detail: [{ loc: ["body", "prompt"], msg: "Flagged by a content checker.", type: "content_policy_violation" }] },
    { "x-fal-retryable": "false" }
  ),
  server: Fake.json(500, { detail: "Internal Server Error" }),
  missing: Fake.json(404, { detail: "Path /nothing not found" }),
  runner: Fake.json(
    503,
    { detail: "Runner disconnected unexpectedly", error_type: "runner_disconnected" },
    { "x-fal-error-type": "runner_disconnected", "x-fal-retryable": "true" }
  ),
  page: Fake.text(502, "text/html", "<html><body>Bad gateway</body></html>"),
  garbage: Fake.text(200, "application/json", '{"request_id":"x","status":"COMP'),
  empty: Fake.text(200, "application/json", ""),
  "cut answer": Fake.steps({ type: "application/json" }, '{"request_id":', Fake.cut)
} as const

export interface Job {
  readonly model: string
  readonly input: Readonly<Record<string, unknown>>
  readonly credential: string | undefined
}

/** Serves one job at a time below `/queue`. Its URLs contain fal's own host, like behind a proxy. */
export interface FalHost extends JobHost.JobHost<Step> {
  readonly url: string
  /** Sets the status of the job. */
  readonly stands: (status: string) => Effect.Effect<void>
  /** Completes the job with this result. */
  readonly ends: (result: unknown) => Effect.Effect<void>
  /** Sets the URLs in the answers to the next submits. */
  readonly names: (urls: Readonly<Record<string, unknown>>) => Effect.Effect<void>
}

const job = /^\/queue\/(.+)\/requests\/([^/?]+)(\/status|\/cancel)?(\?|$)/

const stepOf = ({ method, path }: Fake.Received): Step => {
  if (method === "POST") return "submit"
  const [, , , action] = job.exec(path) ?? []
  if (action === "/status") return "poll"
  if (action === "/cancel") return "cancel"
  return path.startsWith("/files/") ? "download" : "result"
}

/** Reads the request that submits a job. */
export const jobOf = ({ body, headers, path }: Fake.Received): Job => ({
  model: path.replace(/^\/queue\//, ""),
  input: Predicate.isRecord(body) ? body : {},
  credential: headers.authorization
})

export const make = Effect.gen(function* () {
  let state: { readonly status: string; readonly result?: unknown; readonly urls?: Readonly<Record<string, unknown>> } =
    {
      status: "IN_QUEUE"
    }
  let jobs = 0
  const set = (next: Partial<typeof state>) =>
    Effect.sync(() => {
      state = { ...state, ...next }
    })
  const isOver = () => state.status === "COMPLETED"

  const named = (path: string) => {
    const [
      ,
      model = path.replace(/^\/queue\//, ""),
      id = `019afc71-0000-7000-8000-${String(++jobs).padStart(12, "0")}`
    ] = job.exec(path) ?? []
    const own = `https://queue.fal.run/${model.split("/").slice(0, 2).join("/")}/requests/${id}`
    return { request_id: id, response_url: own, status_url: `${own}/status`, cancel_url: `${own}/cancel` }
  }

  const usual: Readonly<Record<Step, Fake.Reply>> = {
    submit: (response, received) => {
      const taken = { ...named(received.path), status: "IN_QUEUE", queue_position: 0, ...state.urls }
      return Fake.json(200, taken)(response, received)
    },
    poll: (response, received) => {
      const progress = { status: state.status, ...named(received.path), logs: null }
      return Fake.json(isOver() ? 200 : 202, progress)(response, received)
    },
    result: (response, received) => {
      const early = Fake.json(400, { detail: "Request is still in progress" })
      return (isOver() ? Fake.json(200, state.result) : early)(response, received)
    },
    cancel: (response, received) => {
      const late = Fake.json(400, { status: "ALREADY_COMPLETED" })
      return (isOver() ? late : Fake.json(202, { status: "CANCELLATION_REQUESTED" }))(response, received)
    },
    download: Fake.json(404, { detail: "no such file" })
  }

  const steps = yield* JobHost.make(stepOf, usual)
  const host: FalHost = {
    ...steps,
    url: `${steps.origin}/queue`,
    stands: (status) => set({ status }),
    ends: (result) => set({ status: "COMPLETED", result }),
    names: (urls) => set({ urls })
  }
  return host
})
