/** `make` starts a queue for many video jobs, like that of fal. Also contains catalogs of its video models. */

import { writeFile } from "node:fs/promises"
import path from "node:path"
import { Effect, Predicate } from "effect"
import { refusals } from "../../providers/fal-queue/FalHost.ts"
import { tinyClip } from "../fixtures/TinyMedia.ts"
import { Deployment } from "../gateway/Deployment.ts"
import * as Fake from "./FakeUpstream.ts"

/** A request that the queue received. */
export interface Call {
  readonly step: "submit" | "poll" | "result" | "download" | "cancel"
  /** The account's part of the URL. */
  readonly account: string
  readonly prompt: string
  /** The credential of the request. */
  readonly credential: string
  readonly path: string
  /** The body as JSON. Undefined if there is none. */
  readonly body: unknown
}

/** The result of a job. */
export interface Fate {
  /** The response to the submit. `lost`: the job is accepted, but the response breaks. */
  readonly submit: "taken" | "refused" | "moderation" | "lost"
  /** The number of polls until the job is completed. */
  readonly polls: number
  /** The number of the poll that fails. */
  readonly stumble?: number
  readonly end: "clip" | "moderation" | "runner"
}

export interface Rules {
  readonly fate: (account: string, prompt: string) => Fate
  /** Whether jobs may complete now. */
  readonly isOpen?: () => boolean
  /** An effect that each call waits for before its response. */
  readonly before?: (call: Call) => Effect.Effect<unknown>
}

export interface RenderFarm {
  /** The base URL of accounts. An account's name follows it. */
  readonly url: string
  /** All requests, in order. */
  readonly calls: ReadonlyArray<Call>
}

interface Job {
  readonly prompt: string
  polls: number
}

const address = /^\/(\w+)\/(?:files\/([^/?]+)\.mp4|(?:.*\/)?requests\/([^/?]+)(\/status|\/cancel)?|.*)(?:\?.*)?$/

const stepOf = (method: string, file: string | undefined, action: string | undefined): Call["step"] => {
  if (file !== undefined) return "download"
  if (action === "/status") return "poll"
  if (action === "/cancel") return "cancel"
  return method === "POST" ? "submit" : "result"
}

const promptIn = (body: unknown) =>
  Predicate.isRecord(body) && typeof body["prompt"] === "string" ? body["prompt"] : ""

/**
 * Starts a queue like that of fal for any number of accounts and concurrent jobs, whose results are scripted. A clip is
 * the tiny one with its prompt as a note.
 */
export const make = Effect.fnUntraced(function* ({ before = () => Effect.void, fate, isOpen = () => true }: Rules) {
  const calls: Array<Call> = []
  const jobs = new Map<string, Job>()

  const submitted = (account: string, prompt: string): Fake.Reply => {
    const { submit } = fate(account, prompt)
    if (submit === "refused") return refusals.server
    if (submit === "moderation") return refusals.moderation
    const id = `${account}-${jobs.size}`
    jobs.set(id, { prompt, polls: 0 })
    return submit === "lost" ? refusals["cut answer"] : Fake.json(200, { request_id: id, status: "IN_QUEUE" })
  }

  const polled = (account: string, job: Job): Fake.Reply => {
    job.polls += 1
    const { polls, stumble } = fate(account, job.prompt)
    if (job.polls === stumble) return refusals.server
    const isOver = job.polls >= polls && isOpen()
    return Fake.json(isOver ? 200 : 202, {
      status: isOver ? "COMPLETED" : job.polls === 1 ? "IN_QUEUE" : "IN_PROGRESS"
    })
  }

  const ended = (account: string, id: string, { prompt }: Job, host: string): Fake.Reply => {
    const { end } = fate(account, prompt)
    const video = { url: `http://${host}/${account}/files/${id}.mp4`, content_type: "video/mp4" }
    return end === "clip" ? Fake.json(200, { video, seed: 1 }) : refusals[end]
  }

  const downloaded = ({ prompt }: Job): Fake.Reply => {
    const clip = tinyClip(prompt)
    return Fake.steps({ type: "video/mp4" }, clip.subarray(0, 1_000), Effect.sleep("50 millis"), clip.subarray(1_000))
  }

  const fake = yield* Fake.serving(async (response, received) => {
    const [, account = "", file, asked, action] = address.exec(received.path) ?? []
    const step = stepOf(received.method, file, action)
    const id = file ?? asked ?? ""
    const job = jobs.get(id)
    const prompt = step === "submit" ? promptIn(received.body) : (job?.prompt ?? "")
    const { body, headers, path } = received
    const call: Call = { step, account, prompt, credential: headers.authorization ?? "", path, body }
    calls.push(call)
    await Effect.runPromise(before(call))
    const reply = (): Fake.Reply => {
      if (step === "submit") return submitted(account, prompt)
      if (job === undefined) return refusals.missing
      if (step === "poll") return polled(account, job)
      if (step === "result") return ended(account, id, job, received.headers.host ?? "")
      return step === "download" ? downloaded(job) : Fake.json(202, { status: "CANCELLATION_REQUESTED" })
    }
    await reply()(response, received)
  })

  return { url: fake.url, calls } satisfies RenderFarm
})

interface Account {
  readonly base_url: string
  readonly headers?: Readonly<Record<string, string>>
}

/** Returns a model with lengths of 4, 6 or 8 seconds at 0.10 USD per second, with routes to these accounts in order. */
const model = (id: string, accounts: ReadonlyArray<string>) => ({
  id,
  surface: "video",
  pricing: { per_second_usd: 0.1 },
  seconds: { allowed: [4, 6, 8], default: 8 },
  reference_image: "optional",
  routes: accounts.map((provider, index) => ({
    provider,
    model: "vendor/film/text",
    image_model: "vendor/film/image",
    preference: index + 1
  }))
})

/**
 * Returns a catalog with the model `film`, routed to the accounts `a` and `b`, and a model for each further account,
 * with the account's name.
 */
export const videoCatalog = (farm: string, more: Readonly<Record<string, Account>> = {}): string => {
  const accounts = { a: { base_url: `${farm}/a` }, b: { base_url: `${farm}/b` }, ...more }
  return JSON.stringify({
    providers: Object.fromEntries(
      Object.entries(accounts).map(([name, account]) => [
        name,
        { adapter: "fal-queue", credential: "FARM_KEY", ...account }
      ])
    ),
    models: [model("film", ["a", "b"]), ...Object.keys(more).map((name) => model(name, [name]))]
  })
}

/** The price of a video, in nano-USD. */
export const priceOf = (seconds: number): bigint => BigInt(seconds) * 100_000_000n

/** The environment variables with which a gateway sells videos of this queue. */
export const videoEnvironment = Effect.fnUntraced(function* (farm: string) {
  const { directory } = yield* Deployment
  const file = path.join(directory, "films.yaml")
  yield* Effect.promise(() => writeFile(file, videoCatalog(farm)))
  return { CATALOG_FILE: file, FARM_KEY: "k" }
})
