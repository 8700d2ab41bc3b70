import { Effect, Schema } from "effect"
import { assert } from "../It.ts"
import { type Answer, attempt, type ConnectionBroke, get } from "./ChatClient.ts"

export interface AskedVideo {
  /** Where the gateway is, without `/v1`. */
  readonly url: string
  readonly secret: string
  /** The `Idempotency-Key`. */
  readonly key?: string
  readonly body: object
}

/** Asks for a video in JSON and reads the whole answer. Interrupting it drops the connection. */
export const film = ({ body, key, secret, url }: AskedVideo): Effect.Effect<Answer, ConnectionBroke> =>
  attempt(async (signal) => {
    const response = await fetch(`${url}/v1/videos`, {
      method: "POST",
      signal,
      headers: {
        authorization: `Bearer ${secret}`,
        "content-type": "application/json",
        ...(key === undefined ? {} : { "idempotency-key": key })
      },
      body: JSON.stringify(body)
    })
    return { status: response.status, headers: response.headers, text: await response.text() }
  })

export const Video = Schema.Struct({
  id: Schema.String,
  object: Schema.Literal("video"),
  model: Schema.String,
  status: Schema.Literal("queued", "in_progress", "completed", "failed"),
  progress: Schema.Int,
  created_at: Schema.Int,
  completed_at: Schema.optional(Schema.Int),
  seconds: Schema.Int,
  url: Schema.optional(Schema.String),
  data: Schema.optional(Schema.Tuple(Schema.Struct({ url: Schema.String }))),
  error: Schema.optional(Schema.Struct({ code: Schema.String, message: Schema.String }))
})
export type Video = typeof Video.Type

const decodeVideo = Schema.decodeUnknownSync(Schema.parseJson(Video), { onExcessProperty: "error" })
const decodeList = Schema.decodeUnknownSync(
  Schema.parseJson(
    Schema.Struct({
      object: Schema.Literal("list"),
      data: Schema.Array(Video),
      first_id: Schema.NullOr(Schema.String),
      last_id: Schema.NullOr(Schema.String),
      has_more: Schema.Boolean
    })
  ),
  { onExcessProperty: "error" }
)

/** The video of an answer that has one. */
export const videoOf = ({ status, text }: Pick<Answer, "status" | "text">, expected = 200): Video => {
  assert.strictEqual(status, expected, text)
  return decodeVideo(text)
}

/** What is below `/v1/videos`. */
export const see = ({ secret, url }: Pick<AskedVideo, "secret" | "url">, below = "") =>
  get(`${url}/v1/videos${below}`, { authorization: `Bearer ${secret}` })

export const listed = (from: Pick<AskedVideo, "secret" | "url">, query = "?limit=100") =>
  Effect.map(see(from, query), ({ status, text }) => {
    assert.strictEqual(status, 200, text)
    return decodeList(text).data
  })

/** Looks at a video, as a client would, until it is over; its states in the order in which they were seen. */
export const untilOver = <E, R>(look: Effect.Effect<Pick<Video, "status">, E, R>) =>
  Effect.gen(function* () {
    const states: Array<Video["status"]> = []
    while (states.at(-1) !== "completed" && states.at(-1) !== "failed") {
      const { status } = yield* look
      if (states.at(-1) !== status) states.push(status)
      yield* Effect.sleep("200 millis")
    }
    return states
  }).pipe(Effect.timeout("40 seconds"))

/** States as no video may have them in another order; each may be missed. */
export const assertStates = (states: ReadonlyArray<Video["status"]>, last: Video["status"]) => {
  const order: ReadonlyArray<Video["status"]> = ["queued", "in_progress", last]
  assert.deepStrictEqual(
    states,
    order.filter((status) => states.includes(status))
  )
  assert.strictEqual(states.at(-1), last)
}

/** A public link's bytes; without a key. */
export const fetched = (link: string) =>
  attempt(async (signal) => {
    const response = await fetch(link, { signal })
    return { status: response.status, headers: response.headers, bytes: Buffer.from(await response.arrayBuffer()) }
  })
