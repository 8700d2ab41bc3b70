/** Images and videos of a customer. `draw` and `film` send requests, and `assertLinked` checks the links in their answers. */

import { readdir, readFile } from "node:fs/promises"
import path from "node:path"
import { Effect, Schema } from "effect"
import { assert } from "../It.ts"
import { edits, generations } from "../upstream/Replies.ts"
import { type Answer, attempt, type ConnectionBroke, get } from "./ChatClient.ts"

export interface AskedVideo {
  /** The gateway's address without `/v1`. */
  readonly url: string
  readonly secret: string
  /** The header `Idempotency-Key`. */
  readonly key?: string
  readonly body: object
}

/** Requests a video and reads the complete answer. Interruption closes the connection. */
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
  charge_usd: Schema.optional(Schema.Number),
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

/** Returns the video of an answer. Fails if the status differs. */
export const videoOf = ({ status, text }: Pick<Answer, "status" | "text">, expected = 200): Video => {
  assert.strictEqual(status, expected, text)
  return decodeVideo(text)
}

/** Sends a GET to `/v1/videos` or a path below it. */
export const see = ({ secret, url }: Pick<AskedVideo, "secret" | "url">, below = "") =>
  get(`${url}/v1/videos${below}`, { authorization: `Bearer ${secret}` })

export const listed = (from: Pick<AskedVideo, "secret" | "url">, query = "?limit=100") =>
  Effect.map(see(from, query), ({ status, text }) => {
    assert.strictEqual(status, 200, text)
    return decodeList(text).data
  })

/** Polls a video until it has finished. Returns its statuses in the order in which they were seen. */
export const pollUntilFinished = <E, R>(look: Effect.Effect<Pick<Video, "status">, E, R>) =>
  Effect.gen(function* () {
    const states: Array<Video["status"]> = []
    while (states.at(-1) !== "completed" && states.at(-1) !== "failed") {
      const { status } = yield* look
      if (states.at(-1) !== status) states.push(status)
      yield* Effect.sleep("200 millis")
    }
    return states
  }).pipe(Effect.timeout("40 seconds"))

/** Asserts that the statuses are in the order of a video's life. A poll may miss any of them. */
export const assertStates = (states: ReadonlyArray<Video["status"]>, last: Video["status"]) => {
  const order: ReadonlyArray<Video["status"]> = ["queued", "in_progress", last]
  assert.deepStrictEqual(
    states,
    order.filter((status) => states.includes(status))
  )
  assert.strictEqual(states.at(-1), last)
}

/** Downloads a public link without a key. */
export const fetched = (link: string) =>
  attempt(async (signal) => {
    const response = await fetch(link, { signal })
    return { status: response.status, headers: response.headers, bytes: Buffer.from(await response.arrayBuffer()) }
  })

/** The price of the deployment's image model, in nano-USD. */
export const price = 40_000_000n

export interface AskedImage {
  readonly url: string
  readonly secret: string
  /** The header `Idempotency-Key`. */
  readonly key?: string
  readonly prompt?: string
  /** Further fields of the body. */
  readonly more?: object
  /** A form. It is sent to the endpoint for edits, and all other options are ignored. */
  readonly form?: FormData
}

const bodyOf = ({ form, more, prompt = "a cat" }: AskedImage) =>
  form === undefined
    ? { body: JSON.stringify({ model: "i1", prompt, ...more }), type: { "content-type": "application/json" } }
    : { body: form, type: {} }

/** Requests an image and reads the complete answer. Interruption closes the connection. */
export const draw = (asked: AskedImage): Effect.Effect<Answer, ConnectionBroke> =>
  attempt(async (signal) => {
    const { body, type } = bodyOf(asked)
    const key = asked.key === undefined ? {} : { "idempotency-key": asked.key }
    const response = await fetch(`${asked.url}${asked.form === undefined ? generations : edits}`, {
      method: "POST",
      signal,
      headers: { authorization: `Bearer ${asked.secret}`, ...type, ...key },
      body
    })
    return { status: response.status, headers: response.headers, text: await response.text() }
  })

/** Returns a form for an edit, as browsers and the official clients send it, with a new boundary each time. */
export const editForm = (reference: Uint8Array, fields: Readonly<Record<string, string>> = {}): FormData => {
  const form = new FormData()
  for (const [name, value] of Object.entries({ model: "i1", prompt: "a cat", ...fields })) form.append(name, value)
  form.append("image", new File([new Uint8Array(reference)], "a.png", { type: "image/png" }))
  return form
}

const Images = Schema.parseJson(
  Schema.Struct({
    created: Schema.Number,
    size: Schema.String,
    data: Schema.Tuple(
      Schema.Struct({
        url: Schema.optional(Schema.String),
        b64_json: Schema.optional(Schema.String),
        revised_prompt: Schema.optional(Schema.String)
      })
    )
  })
)

const decode = ({ status, text }: Pick<Answer, "status" | "text">) => {
  assert.strictEqual(status, 200, text)
  return Schema.decodeUnknownSync(Images, { onExcessProperty: "error" })(text)
}

/** Returns the only image of an answer, as a link or as base64. */
export const imageOf = (answer: Pick<Answer, "status" | "text">) => decode(answer).data[0]

export const sizeOf = (answer: Pick<Answer, "status" | "text">) => decode(answer).size

export const isReplay = ({ headers }: Answer): boolean => headers.get("idempotency-replayed") === "true"

/** Returns the files in the gateway's media store below its data directory, by name. */
export const mediaIn = (dataDir: string) =>
  Effect.promise(async () => {
    const media = path.join(dataDir, "media")
    const folders = await Promise.all(
      ["public", "private", "incoming"].map(async (folder) => {
        const names = await readdir(path.join(media, folder)).catch(() => [])
        const files = await Promise.all(
          names.map(async (name) => {
            // A file that is being written may be moved meanwhile.
            const bytes = await readFile(path.join(media, folder, name)).catch(() => undefined)
            return bytes === undefined ? [] : [[`${folder}/${name}`, bytes] as const]
          })
        )
        return files.flat()
      })
    )
    return new Map<string, Buffer>(folders.flat())
  })

const load = (url: string, headers: Readonly<Record<string, string>> = {}, method = "GET") =>
  Effect.promise(async () => {
    const response = await fetch(url, { headers, method })
    return { status: response.status, headers: response.headers, bytes: Buffer.from(await response.arrayBuffer()) }
  })

/**
 * Asserts that the link serves these bytes without a key, completely and in ranges, with the headers for caching and
 * safe display.
 */
export const assertLinked = Effect.fnUntraced(function* (url: string, bytes: Uint8Array, type = "image/png") {
  assert.match(url, /\/media\/public\/[A-Za-z0-9_-]{32}\.(png|jpg|webp|gif|mp4)$/)
  const whole = yield* load(url)
  assert.strictEqual(whole.status, 200)
  assert.isTrue(whole.bytes.equals(bytes), "other bytes")
  const told = {
    "content-type": type,
    "cache-control": "public, max-age=31536000, immutable",
    "x-content-type-options": "nosniff",
    "content-security-policy": "sandbox; default-src 'none'",
    "accept-ranges": "bytes"
  }
  const assertClientError = (headers: Headers) => {
    for (const [name, value] of Object.entries(told)) assert.strictEqual(headers.get(name), value, name)
  }
  assertClientError(whole.headers)
  assert.strictEqual(whole.headers.get("content-length"), String(bytes.length))
  const etag = whole.headers.get("etag") ?? ""
  assert.match(etag, /^"[^"]+"$/)

  const head = yield* load(url, {}, "HEAD")
  assert.deepStrictEqual([head.status, head.bytes.length], [200, 0])
  assertClientError(head.headers)
  assert.strictEqual(head.headers.get("content-length"), String(bytes.length))

  const part = yield* load(url, { range: "bytes=2-9" })
  assert.strictEqual(part.status, 206)
  assertClientError(part.headers)
  assert.strictEqual(part.headers.get("content-range"), `bytes 2-9/${bytes.length}`)
  assert.isTrue(part.bytes.equals(bytes.subarray(2, 10)), "another part")
  const beyond = yield* load(url, { range: `bytes=${bytes.length}-` })
  assert.deepStrictEqual([beyond.status, beyond.headers.get("content-range")], [416, `bytes */${bytes.length}`])

  // Sets `cache-control`, because fetch would otherwise send `no-cache` with the caller's condition.
  const known = yield* load(url, { "if-none-match": etag, "cache-control": "max-age=0" })
  assert.deepStrictEqual([known.status, known.bytes.length], [304, 0])
})
