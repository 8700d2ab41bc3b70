import { Context, Effect, Layer, Predicate } from "effect"
import { parse, parseDocument } from "yaml"
import { png, tinyClip } from "../harness/fixtures/TinyMedia.ts"
import * as Served from "../harness/gateway/ServedGateway.ts"
import * as Fake from "../harness/upstream/FakeUpstream.ts"

/** A provider in a catalog file. */
export interface VendorEntry {
  readonly adapter: string
  readonly base_url: string
  readonly credential: string
}

export interface RouteEntry {
  readonly provider: string
  readonly model: string
  readonly edit_model?: string
  readonly image_model?: string
  readonly edit?: boolean
  readonly options?: Readonly<Record<string, unknown>>
}

export interface ModelEntry {
  readonly id: string
  readonly surface: "chat" | "image" | "video"
  readonly reference_image?: "none" | "optional" | "required"
  readonly routes: ReadonlyArray<RouteEntry>
}

/** Parses a catalog without the gateway's code. */
export const read = (
  text: string
): { readonly providers: Readonly<Record<string, VendorEntry>>; readonly models: ReadonlyArray<ModelEntry> } =>
  parse(text)

/** An upstream request and its vendor. */
export interface Asked extends Fake.Received {
  readonly provider: string
}

/** Fake vendors for every provider of a catalog, each below its provider's name at one address. */
export class Vendors extends Context.Tag("test/Vendors")<
  Vendors,
  {
    /** The upstream requests of an order so far, oldest first. */
    readonly of: (order: number) => ReadonlyArray<Asked>
  }
>() {}

/** A prompt. If it names a vendor, all others fail. */
export const order = (number: number, vendor = "anybody"): string => `Order ${number} for ${vendor}.`
const ordered = /Order (\d+) for ([\w-]+)\./

/** A placeholder for a vendor's key. */
export const secretOf = (variable: string): string => `sk-dummy-${variable}`

const said = "fine"
const picture = png.toString("base64")

const wantsPicture = ({ body }: Fake.Received) => JSON.stringify(body).includes('"responseModalities"')

const gemini = (part: object) => ({
  candidates: [{ content: { role: "model", parts: [part] }, index: 0, finishReason: "STOP" }],
  usageMetadata: { promptTokenCount: 5, candidatesTokenCount: 1, totalTokenCount: 6 }
})

interface Question extends Fake.Received {
  readonly own: string
  /** The path below `base_url`. */
  readonly below: string
  readonly isVideo: boolean
}

const job = (isVideo: boolean) => (isVideo ? "a-clip" : "a-picture")
const outcome = ({ below, own, isVideo }: Question) =>
  isVideo || below.includes(job(true))
    ? { url: `${own}/files/a.mp4`, isClip: true }
    : { url: `${own}/files/a.png`, isClip: false }

/** Each wire's reply to any request. */
const answers: Readonly<Record<string, (question: Question) => unknown>> = {
  "openai-chat": () => ({
    choices: [{ index: 0, message: { role: "assistant", content: said }, finish_reason: "stop" }],
    usage: { prompt_tokens: 5, completion_tokens: 1, total_tokens: 6 }
  }),
  "openai-responses": () => ({
    id: "resp_1",
    object: "response",
    status: "completed",
    output: [{ type: "message", id: "m", role: "assistant", content: [{ type: "output_text", text: said }] }],
    usage: { input_tokens: 5, output_tokens: 1, total_tokens: 6 }
  }),
  anthropic: () => ({
    id: "msg_1",
    type: "message",
    role: "assistant",
    content: [{ type: "text", text: said }],
    stop_reason: "end_turn",
    usage: { input_tokens: 5, output_tokens: 1 }
  }),
  gemini: (received) => {
    if (received.path.endsWith(":predict"))
      return { predictions: [{ mimeType: "image/png", bytesBase64Encoded: picture }] }
    return gemini(wantsPicture(received) ? { inlineData: { mimeType: "image/png", data: picture } } : { text: said })
  },
  "openai-images": () => ({ created: 1, data: [{ b64_json: picture }] }),
  "fal-queue": (question) => {
    const { below, isVideo, method } = question
    if (method === "POST") return { request_id: job(isVideo), status: "IN_QUEUE" }
    if (below.includes("/status")) return { status: "COMPLETED" }
    const { isClip, url } = outcome(question)
    return isClip ? { video: { url } } : { images: [{ url }] }
  },
  replicate: (question) => {
    const { isClip, url } = outcome(question)
    return { id: job(isClip), status: "succeeded", output: url, error: null }
  }
}

const bytes = (type: string, body: Uint8Array): Fake.Reply => Fake.steps({ type }, body)

const place = /^\/([^/]+)(\/.*)$/

const vendors = Effect.fnUntraced(function* ({ models, providers }: ReturnType<typeof read>) {
  const filmed = models.filter(({ surface }) => surface === "video").flatMap(({ routes }) => routes)
  const films = new Set(filmed.flatMap(({ image_model = "", model }) => [model, image_model]).filter(Boolean))
  const chatRequest = new Map<number, Array<Asked>>()
  const clip = tinyClip("every model")
  const fake = yield* Fake.serving((response, received) => {
    const [, provider = "", path = ""] = place.exec(received.path) ?? []
    const [, number, wanted = "anybody"] = ordered.exec(received.bytes.toString("latin1")) ?? []
    if (number !== undefined) {
      const before = chatRequest.get(Number(number)) ?? []
      chatRequest.set(Number(number), [...before, { ...received, provider }])
      if (wanted !== "anybody" && wanted !== provider) return Fake.json(503, { error: "busy" })(response, received)
    }
    if (path.startsWith("/files/")) {
      return (path.endsWith(".mp4") ? bytes("video/mp4", clip) : bytes("image/png", png))(response, received)
    }
    const answer = answers[providers[provider]?.adapter ?? ""]
    const own = `http://${received.headers.host}/${provider}`
    const isVideo = films.has(path.replace(/^\/(v1\/models\/)?/, "").replace(/\/predictions$/, ""))
    return Fake.json(200, answer?.({ ...received, own, below: path, isVideo }) ?? null)(response, received)
  })
  return { url: fake.url, service: Vendors.of({ of: (number) => chatRequest.get(number) ?? [] }) }
})

/** Replaces the base URL of every provider in a catalog with the fake vendors'. */
const rerouted = (text: string, url: string): string => {
  const document = parseDocument(text)
  for (const [name, { base_url }] of Object.entries(read(text).providers)) {
    document.setIn(["providers", name, "base_url"], `${url}/${name}${new URL(base_url).pathname.replace(/\/$/, "")}`)
  }
  return String(document)
}

/** A gateway with a catalog, all credentials, and the fake vendors. */
export const gateway = (text: string) =>
  Layer.unwrapScoped(
    Effect.gen(function* () {
      const { models, providers } = read(text)
      const { service, url } = yield* vendors({ models, providers })
      const keys = Object.values(providers).map(({ credential }) => [credential, secretOf(credential)])
      const served = Served.layer(Effect.succeed({ catalog: rerouted(text, url), env: Object.fromEntries(keys) }))
      return Layer.merge(served, Layer.succeed(Vendors, service))
    })
  )

const inPath = (path: string) => ({ path, model: undefined })
const inBody = (path: string, model: string) => ({ path, model })

/** Returns the path of a route's request below its base URL, and the model if the body contains it. */
export const target = (adapter: string, surface: ModelEntry["surface"], route: RouteEntry, withImage: boolean) => {
  const model = (withImage ? (route.edit_model ?? route.image_model) : undefined) ?? route.model
  switch (adapter) {
    case "openai-chat":
      return inBody("/chat/completions", model)
    case "openai-responses":
      return inBody("/responses", model)
    case "anthropic":
      return inBody("/v1/messages", model)
    case "openai-images":
      return inBody(withImage ? "/images/edits" : "/images/generations", model)
    case "gemini": {
      const predicts = surface === "image" && route.options?.["api"] === "predict"
      return inPath(`/v1beta/models/${model}:${predicts ? "predict" : "generateContent"}`)
    }
    case "fal-queue":
      return inPath(`/${model}`)
    case "replicate":
      return inPath(`/v1/models/${model}/predictions`)
    default:
      throw new Error(`nobody knows where ${adapter} goes`)
  }
}

const field = /name="model"\r\n\r\n([^\r]+)\r\n/

/** Returns the model in a JSON body or form. */
export const modelIn = ({ body, bytes }: Fake.Received): unknown =>
  Predicate.isRecord(body) ? body.model : field.exec(bytes.toString("latin1"))?.[1]
