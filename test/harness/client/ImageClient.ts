import { readdir, readFile } from "node:fs/promises"
import path from "node:path"
import { Effect, Schema } from "effect"
import { assert } from "../It.ts"
import { edits, generations } from "../upstream/ImageReplies.ts"
import { type Answer, attempt, type ConnectionBroke } from "./ChatClient.ts"

/** What the deployment's image model costs, in nano-USD. */
export const price = 40_000_000n

export interface AskedImage {
  readonly url: string
  readonly secret: string
  /** The `Idempotency-Key`. */
  readonly key?: string
  readonly prompt?: string
  /** Further fields of the body. */
  readonly more?: object
  /** A form goes to the path of edits, whatever else was given. */
  readonly form?: FormData
}

const bodyOf = ({ form, more, prompt = "a cat" }: AskedImage) =>
  form === undefined
    ? { body: JSON.stringify({ model: "i1", prompt, ...more }), type: { "content-type": "application/json" } }
    : { body: form, type: {} }

/** Asks for an image and reads the whole answer. Interrupting it drops the connection. */
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

/** A form for an edit, as browsers and the official clients send it: with a boundary of its own each time. */
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

/** The only image of an answer, in one of its two forms. */
export const imageOf = (answer: Pick<Answer, "status" | "text">) => decode(answer).data[0]

export const sizeOf = (answer: Pick<Answer, "status" | "text">) => decode(answer).size

export const isReplay = ({ headers }: Answer): boolean => headers.get("idempotency-replayed") === "true"

/** The files that a gateway's store holds below its data directory, by name. */
export const mediaIn = (dataDir: string) =>
  Effect.promise(async () => {
    const media = path.join(dataDir, "media")
    const folders = await Promise.all(
      ["public", "private", "incoming"].map(async (folder) => {
        const names = await readdir(path.join(media, folder)).catch(() => [])
        const files = await Promise.all(
          names.map(async (name) => {
            // What is being written may be moved meanwhile.
            const bytes = await readFile(path.join(media, folder, name)).catch(() => undefined)
            return bytes === undefined ? [] : [[`${folder}/${name}`, bytes] as const]
          })
        )
        return files.flat()
      })
    )
    return new Map<string, Buffer>(folders.flat())
  })
