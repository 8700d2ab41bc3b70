import { Effect, Predicate, type Scope } from "effect"
import type { Picture } from "../../../src/domain/Media.ts"
import type { ImageRoute } from "../../../src/domain/Model.ts"
import type { Fault, Host, Painting, Understood } from "../../contracts/ImageHarness.ts"
import { base64, imageTypeOf, secret } from "../../contracts/MediaHarness.ts"
import * as Fake from "../../harness/upstream/FakeUpstream.ts"
import { accountOf, imageRouteOf } from "../jobs/Hosts.ts"

export const routeTo = (baseUrl: string, options: ImageRoute["options"] = {}): ImageRoute => ({
  ...imageRouteOf({
    provider: accountOf("openai-images", baseUrl),
    model: "vendor/draw-1",
    editModel: "vendor/redraw-1"
  }),
  options
})

/** Errors in OpenAI's format. */
const invalid = "invalid_request_error"
export const errors = {
  limit: { status: 429, error: { message: "Slow down", type: "images", code: "rate_limit_exceeded" } },
  funds: { status: 400, error: { message: "Limit", type: invalid, code: "billing_hard_limit_reached" } },
  key: { status: 401, error: { message: `Bad key ${secret}`, type: invalid, code: "invalid_api_key" } },
  request: {
    status: 400,
    error: { message: "Too long", type: invalid, param: "prompt", code: "string_above_max_length" }
  },
  image: {
    status: 400,
    error: { message: "Bad image", type: "image_generation_user_error", code: "invalid_image_file" }
  },
  moderation: {
    status: 400,
    error: { message: "No", type: "image_generation_user_error", code: "moderation_blocked" }
  },
  server: { status: 500, error: { message: "Sorry", type: "server_error", code: "server_error" } },
  missing: { status: 404, error: { message: "No such model", type: invalid, code: "model_not_found" } }
} as const

export const isError = (fault: Fault): fault is keyof typeof errors => fault in errors

/** A successful answer with these items, in the official client's type. Token usage is ignored. */
const answer = (...data: ReadonlyArray<unknown>) => ({
  created: 1,
  background: "opaque",
  output_format: "png",
  data,
  usage: {
    input_tokens: 9,
    output_tokens: 272,
    total_tokens: 281,
    input_tokens_details: { image_tokens: 0, text_tokens: 9 }
  }
})

const badResponse = (fault: Exclude<Fault, keyof typeof errors>): Fake.Reply => {
  switch (fault) {
    case "page":
      return Fake.text(502, "text/html", "<html><body>Bad gateway</body></html>")
    case "empty":
      return Fake.text(200, "application/json", "")
    case "garbage":
      return Fake.text(200, "application/json", '{"data":[{"b64')
    case "error inside":
      return Fake.json(200, { error: { message: "boom", type: "server_error" } })
    case "deep error":
      return Fake.json(200, { error: Fake.deep })
    case "no picture":
      return Fake.json(200, answer())
    case "broken picture":
      return Fake.json(200, answer({ b64_json: "<svg/> is no base64!" }))
    case "empty picture":
      return Fake.json(200, answer({ b64_json: "====" }))
    default:
      return Fake.steps({ type: "application/json" }, '{"created":1,"data":[{"b64_json":"iVBORw', Fake.cut)
  }
}

const pictureOf = async (file: Blob): Promise<Picture> => {
  const type = imageTypeOf(file.type)
  if (type === undefined) throw new Error(`a reference of type ${file.type}`)
  return { type, bytes: new Uint8Array(await file.arrayBuffer()) }
}

/** Uses the platform's form parser. */
export const formIn = ({ bytes, headers }: Fake.Received): Promise<FormData> =>
  new Response(new Uint8Array(bytes), { headers: { "content-type": headers["content-type"] ?? "" } }).formData()

const files = (form: FormData) =>
  [...form.getAll("image"), ...form.getAll("image[]")].filter((part) => typeof part !== "string")

const text = (form: FormData, name: string): string => {
  const values = form.getAll(name)
  const [value] = values
  return values.length === 1 && typeof value === "string" ? value : `${values.length} of ${name}`
}

const understood = async (received: Fake.Received): Promise<Understood> => {
  const credential = received.headers.authorization
  if (received.path === "/v1/images/edits") {
    const form = await formIn(received)
    const references = await Promise.all(files(form).map(pictureOf))
    return { model: text(form, "model"), prompt: text(form, "prompt"), references, credential }
  }
  const body = Predicate.isRecord(received.body) ? received.body : {}
  return { model: String(body.model), prompt: String(body.prompt), references: [], credential }
}

const pictures = "/pictures/1?sig=a%2Fb"

/** An API host and a host for images. Both serve images below `/pictures`. */
export const ownHost: Effect.Effect<Host & { readonly fake: Fake.FakeUpstream }, never, Scope.Scope> = Effect.gen(
  function* () {
    const fake = yield* Fake.make
    const other = yield* Fake.make
    let looksAt = fake
    const serves = ({ bytes }: Painting): Fake.Reply => Fake.steps({ type: "image/png" }, bytes)
    const item = ({ bytes, revisedPrompt, where }: Painting) => ({
      ...(where === "inside"
        ? { b64_json: base64(bytes) }
        : { url: `${(where === "own" ? fake : other).url}${pictures}` }),
      ...(revisedPrompt === undefined ? undefined : { revised_prompt: revisedPrompt })
    })
    const isDownload = ({ method, path }: Fake.Received) => method === "GET" && path === pictures
    return {
      fake,
      route: routeTo(`${fake.url}/v1`),
      answer: (painting) => {
        const { where } = painting
        looksAt = where === "elsewhere" ? other : fake
        const reply = fake.script(Fake.json(200, answer(item(painting))))
        return where === "inside" ? reply : Effect.zipRight(reply, looksAt.script(serves(painting)))
      },
      fail: (fault) => {
        if (!isError(fault)) return fake.script(badResponse(fault))
        const { error, status } = errors[fault]
        return fake.script(Fake.json(status, { error }, fault === "limit" ? { "retry-after": "7" } : {}))
      },
      received: Effect.flatMap(fake.received, (received) => Effect.promise(() => understood(received))),
      fetched: Effect.suspend(() => looksAt.received).pipe(
        Effect.repeat({ until: isDownload }),
        Effect.map(({ headers }) => ({ credential: headers.authorization }))
      ),
      hold: (painting) => Fake.holdJson(fake.script, answer(item(painting)))
    }
  }
)
