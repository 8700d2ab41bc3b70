import { Effect, type Scope } from "effect"
import type { Picture } from "../../../src/domain/Media.ts"
import type { ImageRoute } from "../../../src/domain/Model.ts"
import { list, makeMock, record } from "../../contracts/ChatHosts.ts"
import type { Fault, Host, Painting, Understood } from "../../contracts/ImageHarness.ts"
import { base64, imageTypeOf, secret } from "../../contracts/MediaHarness.ts"
import * as Fake from "../../harness/upstream/FakeUpstream.ts"
import { accountOf, imageRouteOf } from "../jobs/Hosts.ts"
import { called, chunk, errors } from "./Wire.ts"

/** Images by `generateContent`, or by `predict`, which cannot edit. */
export type Way = "generate" | "predict"

export const routeTo = (baseUrl: string, way: Way, options: ImageRoute["options"] = {}): ImageRoute => ({
  ...imageRouteOf({
    provider: accountOf("gemini", baseUrl),
    model: "draw-1",
    editModel: way === "predict" ? undefined : "redraw-1"
  }),
  options: way === "predict" ? { api: "predict", ...options } : options
})

const inline = (bytes: Uint8Array) => ({ inlineData: { mimeType: "image/png", data: base64(bytes) } })

const picture = ({ bytes }: Pick<Painting, "bytes">, way: Way) =>
  way === "predict"
    ? { predictions: [{ mimeType: "image/png", bytesBase64Encoded: base64(bytes) }] }
    : chunk([{ text: "Here it is." }, { ...inline(bytes), thoughtSignature: "c2ln" }], "STOP", {
        promptTokenCount: 9,
        candidatesTokenCount: 1290,
        totalTokenCount: 1299
      })

/** Replacements for the image. */
const spoilt = (data: string, way: Way) =>
  way === "predict"
    ? { predictions: [{ mimeType: "image/png", bytesBase64Encoded: data }] }
    : chunk([{ inlineData: { mimeType: "image/png", data } }], "STOP")

const badResponse = (fault: Exclude<Fault, keyof typeof errors>, way: Way): Fake.Reply => {
  switch (fault) {
    case "moderation":
      return way === "predict"
        ? Fake.json(200, { predictions: [{ raiFilteredReason: "Unable to show generated images." }] })
        : Fake.json(200, chunk([], "IMAGE_SAFETY"))
    case "page":
      return Fake.text(502, "text/html", "<html><body>Bad gateway</body></html>")
    case "empty":
      return Fake.text(200, "application/json", "")
    case "garbage":
      return Fake.text(200, "application/json", '{"candidates":[{"con')
    case "error inside":
      return Fake.json(200, { error: { code: 500, status: "INTERNAL", message: "boom" } })
    case "deep error":
      return Fake.json(200, { error: Fake.deep })
    case "no picture":
      return Fake.json(200, way === "predict" ? {} : chunk([{ text: "I had rather not." }], "NO_IMAGE"))
    case "broken picture":
      return Fake.json(200, spoilt("<svg/> is no base64!", way))
    case "empty picture":
      return Fake.json(200, spoilt("====", way))
    default:
      return Fake.steps({ type: "application/json" }, '{"candidates":[{"content":{"parts":[{"inl', Fake.cut)
  }
}

export const isError = (fault: Fault): fault is keyof typeof errors => fault in errors

const referenceIn = (part: unknown): ReadonlyArray<Picture> => {
  const { data, mimeType } = record(record(part).inlineData)
  const type = imageTypeOf(mimeType)
  return typeof data === "string" && type !== undefined
    ? [{ type, bytes: new Uint8Array(Buffer.from(data, "base64")) }]
    : []
}

const understood = ({ body, headers, path }: Fake.Received): Understood => {
  const { method, model } = called(path)
  const key = headers["x-goog-api-key"]
  const credential = typeof key === "string" ? key : undefined
  const { contents, instances } = record(body)
  if (method === "predict") {
    const [instance] = list(instances)
    return { model, prompt: String(record(instance).prompt), references: [], credential }
  }
  const parts = list(record(list(contents)[0]).parts)
  return { model, prompt: String(record(parts[0]).text), references: parts.flatMap(referenceIn), credential }
}

export const ownHost = (way: Way) =>
  Effect.gen(function* () {
    const fake = yield* Fake.make
    const host: Host & { readonly fake: Fake.FakeUpstream } = {
      fake,
      route: routeTo(fake.url, way),
      answer: (painting) => fake.script(Fake.json(200, picture(painting, way))),
      fail: (fault) =>
        fake.script(
          isError(fault)
            ? Fake.json(errors[fault].code, { error: { ...errors[fault], hint: `not ${secret}` } })
            : badResponse(fault, way)
        ),
      received: Effect.map(fake.received, understood),
      hold: (painting) => Fake.holdJson(fake.script, picture(painting, way))
    }
    return host
  })

/**
 * The same in the words of an independent fake. It has no word for pictures of `generateContent`, but for other media
 * inside an answer, which look the same.
 */
export const aimockHost = (way: Way): Effect.Effect<Host, never, Scope.Scope> =>
  Effect.gen(function* () {
    const mock = yield* makeMock(secret)
    const tap = yield* Fake.serving(Fake.relay(mock.url))
    const match = { predicate: () => true, ...(way === "predict" && { endpoint: "image" as const }) }
    const next = (fixture: Omit<Parameters<typeof mock.addFixture>[0], "match">) =>
      Effect.sync(() => mock.clearFixtures().addFixture({ match, ...fixture }))
    const draws = (b64Json: string) =>
      next({
        response: way === "predict" ? { images: [{ b64Json }] } : { audio: { b64Json, contentType: "image/png" } }
      })
    return {
      route: routeTo(tap.url, way),
      answer: ({ bytes }) => draws(base64(bytes)),
      fail: (fault) => {
        if (fault === "key") {
          return next({ response: { error: { message: "Denied", type: "PERMISSION_DENIED" }, status: 403 } })
        }
        if (isError(fault)) {
          const { code, message, status } = errors[fault]
          return next({ response: { error: { message, type: status }, status: code, retryAfter: 7 } })
        }
        if (fault === "garbage") return next({ response: { images: [] }, chaos: { malformedRate: 1 } })
        if (fault === "moderation") return next({ response: { content: "", finishReason: "IMAGE_SAFETY" } })
        if (fault === "broken picture") return draws("no base64!")
        return next({ response: way === "predict" ? { images: [] } : { content: "No.", finishReason: "NO_IMAGE" } })
      },
      received: Effect.map(tap.received, understood)
    }
  })
