import { Effect, Layer, Stream } from "effect"
import type { VideoModel, VideoRoute } from "../../src/domain/Model.ts"
import { NanoUsd } from "../../src/domain/Money.ts"
import type { VideoRequest } from "../../src/domain/VideoRules.ts"
import {
  type FailureClass,
  ProviderFailure,
  Providers,
  type VideoAdapter,
  type VideoProgress
} from "../../src/services/routing/Provider.ts"

/** The shortest file with the start of a video. The tail makes files different. */
export const clip = (tail = "clip"): Uint8Array =>
  Buffer.concat([
    Buffer.from("\0\0\0\x10ftypisom\0\0\x02\0", "latin1"),
    Buffer.from("\0\0\0\x08moov", "latin1"),
    Buffer.from(tail)
  ])

export const failure = (
  kind: FailureClass,
  status?: number,
  more: { readonly isUnsent?: boolean; readonly detail?: string } = {}
): ProviderFailure => new ProviderFailure({ class: kind, status, detail: `${kind} of the fake`, ...more })

export const refused = failure("network", undefined, { isUnsent: true })
export const unanswered = failure("network")
export const busy = failure("retry", 503)
export const garbage = failure("retry", 200)

type Answers<A> = Effect.Effect<A, ProviderFailure>

/** The results of a route's calls, in order. The last one is repeated. Without a script, the route renders at once. */
export interface Script {
  readonly submit?: ReadonlyArray<Answers<string | void>>
  readonly poll?: ReadonlyArray<Answers<VideoProgress>>
  readonly download?: ReadonlyArray<Stream.Stream<Uint8Array, ProviderFailure>>
  readonly cancel?: ReadonlyArray<Answers<void>>
}

export const rendering = Effect.succeed<VideoProgress>({ state: "in_progress" })
export const waiting = Effect.succeed<VideoProgress>({ state: "queued" })
export const done = Effect.succeed<VideoProgress>({ state: "done" })
export const failed = (why: ProviderFailure) => Effect.succeed<VideoProgress>({ state: "failed", failure: why })

type Call = keyof Script

export interface Called {
  readonly call: Call
  readonly route: VideoRoute
  /** The request of a submit. For other calls, the handle. */
  readonly what: VideoRequest | string
}

/** Video providers by script. */
export class VideoProviderFake {
  /** All calls, in order. */
  readonly called: Array<Called> = []
  /** The prompts or handles of running calls. */
  readonly busy: Array<string> = []
  /** The maximum number of calls that ran at the same time for one prompt or handle. */
  mostAtOnce = 0
  readonly #scripts = new Map<string, { [C in Call]?: Array<NonNullable<Script[C]>[number]> }>()
  #handles = 0

  on(route: string, { cancel = [], download = [], poll = [], submit = [] }: Script): this {
    this.#scripts.set(route, { submit: [...submit], poll: [...poll], download: [...download], cancel: [...cancel] })
    return this
  }

  /** Returns calls such as `submit m@a` and `poll m@a` in order, all or those of one kind. */
  calls(kind?: Call): ReadonlyArray<string> {
    const of = this.called.filter(({ call }) => kind === undefined || call === kind)
    return of.map(({ call, route }) => (kind === undefined ? `${call} ${route.id}` : route.id))
  }

  #next<C extends Call>(call: C, route: VideoRoute, what: VideoRequest | string) {
    const name = `${call} ${typeof what === "string" ? what : what.prompt}`
    const entered = Effect.sync(() => {
      this.called.push({ call, route, what })
      this.busy.push(name)
      this.mostAtOnce = Math.max(this.mostAtOnce, this.busy.filter((one) => one === name).length)
      const steps = this.#scripts.get(route.id)?.[call] ?? []
      return steps.length > 1 ? steps.shift() : steps[0]
    })
    return Effect.acquireRelease(entered, () => Effect.sync(() => this.busy.splice(this.busy.indexOf(name), 1)))
  }

  readonly adapter: VideoAdapter = {
    submit: (route, request) =>
      Effect.scoped(
        Effect.flatMap(this.#next("submit", route, request), (step) =>
          Effect.map(step ?? Effect.void, (handle) => handle ?? `${route.id} ${(this.#handles += 1)}`)
        )
      ),
    poll: (route, handle) => Effect.scoped(Effect.flatMap(this.#next("poll", route, handle), (step) => step ?? done)),
    download: (route, handle) =>
      Stream.unwrapScoped(Effect.map(this.#next("download", route, handle), (step) => step ?? Stream.make(clip()))),
    cancel: (route, handle) =>
      Effect.scoped(Effect.flatMap(this.#next("cancel", route, handle), (step) => step ?? Effect.void))
  }

  readonly layer = Layer.succeed(Providers, new Map([["fake", { adapter: "fake", video: this.adapter }]]))
}

export const account = (name: string): VideoRoute["provider"] => {
  return { name, adapter: "fake", baseUrl: undefined, credential: undefined, headers: {} }
}

export const route = (provider: string, more: Partial<VideoRoute> = {}): VideoRoute => ({
  id: `m@${provider}`,
  provider: account(provider),
  model: "theirs",
  preference: 1,
  weight: 1,
  options: {},
  referenceImage: "optional",
  imageModel: "theirs/image",
  seconds: [4, 8],
  secondsAs: "number",
  cost: undefined,
  ...more
})

/** A model at USD 0.10 per second whose routes are tried in this order. */
export const model = (...routes: ReadonlyArray<VideoRoute>): VideoModel => ({
  id: "m",
  created: 0,
  routes: routes.map((one, index) => ({ ...one, preference: index + 1 })),
  surface: "video",
  pricing: { per: "second", price: NanoUsd(100_000_000n) },
  official: undefined,
  seconds: { allowed: [4, 8], default: 8 },
  referenceImage: "optional"
})
