import { Arbitrary, Either, FastCheck, Schema } from "effect"
import { NanoUsd } from "../../../src/domain/Money.ts"
import { decodeImageBody, ImageEditRequest, ImageGenerationRequest } from "../../../src/http/images/ImageBody.ts"
import { decodeVideoBody, VideoCreateRequest } from "../../../src/http/videos/VideoBody.ts"
import { type Video, videoJson } from "../../../src/services/videos/VideoState.ts"
import { assert, describe, it } from "../../harness/It.ts"
import { gif } from "../images/ImageBodies.ts"
import { published, schemasOf } from "./Published.ts"

const { accepts, document } = published([
  { id: "c-1", surface: "chat" },
  { id: "i-1", surface: "image" },
  { id: "i-2", surface: "image" },
  { id: "v-1", surface: "video" },
  { id: "v-2", surface: "video" }
])

const json = "application/json"
const form = "multipart/form-data"
const edited = { model: "i-1", prompt: "a cat", image: gif }
const filmed = { model: "v-1", prompt: "a cat runs" }
const endpoints = [
  { path: "/images/generations", status: 200, bodies: { [json]: "ImageGenerationRequest" } },
  { path: "/images/edits", status: 200, bodies: { [json]: "ImageEditRequest", [form]: "ImageEditForm" } },
  { path: "/videos", status: 202, bodies: { [json]: "VideoCreateRequest", [form]: "VideoCreateForm" } }
].map((endpoint) => ({ ...endpoint, post: document.paths[endpoint.path]?.post }))

const video: Video = {
  id: "vid_1",
  model: "v-1",
  status: "queued",
  createdAt: 1,
  completedAt: undefined,
  progress: 0,
  seconds: 8,
  url: undefined,
  error: undefined,
  charge: undefined,
  sandbox: false
}

describe("images and videos in the OpenAPI document", () => {
  it.each(endpoints)("accept JSON at $path, and a form where files are sent", ({ bodies, post }) => {
    assert.deepStrictEqual(
      schemasOf(post?.requestBody?.content),
      Object.fromEntries(Object.entries(bodies).map(([type, name]) => [type, { $ref: `#/components/schemas/${name}` }]))
    )
  })

  it.each(endpoints)("enumerate the catalog's ids at $path", ({ bodies, path }) => {
    const [body, other] = path === "/videos" ? [filmed, "v-2"] : [edited, "i-2"]
    for (const name of Object.values(bodies)) {
      assert.isTrue(accepts(name, { ...body, model: other }), name)
      assert.isFalse(accepts(name, { ...body, model: "c-1" }), name)
    }
  })

  it.each(endpoints)("have the idempotency key and the headers of answers at $path", ({ path, post, status }) => {
    const [key, tag, ...others] = post?.parameters ?? []
    assert.lengthOf(others, 0)
    assert.deepInclude(key, { name: "idempotency-key", in: "header", required: false })
    assert.deepInclude(tag, { name: "x-gateway-tag", in: "header", required: false })
    const pattern = Reflect.get(Object(key?.schema), "pattern")
    for (const [value, taken] of [
      ["a", true],
      ["~".repeat(255), true],
      ["", false],
      ["a b", false],
      ["ä", false],
      ["a".repeat(256), false]
    ] as const) {
      assert.strictEqual(new RegExp(String(pattern)).test(value), taken, value)
    }
    const charged = path === "/videos" ? [] : ["x-gateway-charge-usd"]
    const headers = (of: number) => Object.keys(Reflect.get(Object(post?.responses[of]), "headers"))
    const ofTokens = ["limit", "remaining", "reset"].map((name) => `x-ratelimit-${name}-tokens`)
    const rated = ["x-request-id", "x-ratelimit-limit", "x-ratelimit-remaining", ...ofTokens]
    assert.deepStrictEqual(headers(status), [...rated, "x-gateway-sandbox", ...charged, "idempotency-replayed"])
    assert.deepStrictEqual(headers(400), rated)
    assert.deepStrictEqual(headers(401), ["x-request-id"])
    assert.deepStrictEqual(headers(409), [...rated, "x-should-retry"])
    for (const later of [429, 500, 503]) assert.deepStrictEqual(headers(later), [...rated, "retry-after"])
  })

  it("have texts and files in a form", () => {
    assert.isTrue(accepts("ImageEditForm", { ...edited, n: "1" }))
    assert.isFalse(accepts("ImageEditForm", { ...edited, n: 1 }))
    assert.isTrue(accepts("VideoCreateForm", { ...filmed, seconds: "8", n: "1", input_reference: "bytes" }))
    assert.isTrue(accepts("VideoCreateForm", { ...filmed, "input_reference[image_url]": "https://a.test/a.png" }))
    for (const wrong of [{ seconds: "8s" }, { n: "2" }, { n: 1 }, { image: 5 }]) {
      assert.isFalse(accepts("VideoCreateForm", { ...filmed, ...wrong }), JSON.stringify(wrong))
    }
  })

  it("describe an image as it is answered", () => {
    const response = (...data: ReadonlyArray<unknown>) => ({ created: 1, data })
    assert.isTrue(accepts("ImageResponse", response({ url: "https://media.test/a.png" })))
    assert.isTrue(accepts("ImageResponse", response({ b64_json: gif, revised_prompt: "a grey cat" })))
    assert.isFalse(accepts("ImageResponse", response({ url: 1 })))
    assert.isFalse(accepts("ImageResponse", { data: [] }))
  })

  it("describe a video as it is answered in each state", () => {
    const states: ReadonlyArray<Partial<Video>> = [
      {},
      { status: "in_progress" },
      { status: "completed", completedAt: 2, url: "https://media.test/a.mp4", charge: NanoUsd(1_200_000_000n) },
      { status: "failed", completedAt: 2, error: { code: "timeout", message: "Too late." } }
    ]
    const all = states.map((state) => videoJson({ ...video, ...state }))
    for (const shown of all) assert.isTrue(accepts("Video", shown))
    const page = { object: "list", data: all, first_id: "vid_1", last_id: "vid_1", has_more: false }
    for (const list of [page, { ...page, data: [], first_id: null, last_id: null }]) {
      assert.isTrue(accepts("VideoList", list))
    }
    for (const name of ["id", "object", "model", "status", "progress", "created_at"]) {
      assert.isFalse(accepts("Video", { ...all[0], [name]: undefined }), name)
    }
    assert.isFalse(accepts("Video", { ...all[0], status: "done" }))
  })

  it("describe the parameters and headers of reading videos", () => {
    const limit = { type: "integer", minimum: 1, maximum: 100, default: 20 }
    const { parameters = [] } = document.paths["/videos"]?.get ?? {}
    const schemas = { limit, order: { type: "string", enum: ["asc", "desc"] }, after: { type: "string" } }
    for (const [name, schema] of Object.entries(schemas)) {
      const parameter = parameters.find((one) => one.name === name)
      assert.deepInclude(parameter, { in: "query", required: false })
      assert.deepInclude(Object(parameter?.schema), schema)
    }
    assert.lengthOf(parameters, 3)
    const content = document.paths["/videos/{id}/content"]?.get
    assert.deepInclude(content?.parameters[0], { name: "id", in: "path", required: true })
    const found: unknown = content?.responses[302]
    const headersOf = (response: unknown) => Object.keys(Reflect.get(Object(response), "headers"))
    assert.deepStrictEqual(headersOf(found), ["x-request-id", "x-gateway-sandbox", "location"])
    const [one, list] = ["/videos/{id}", "/videos"].map((path) => document.paths[path]?.get?.responses)
    assert.deepStrictEqual(headersOf(one?.[200]), ["x-request-id", "x-gateway-sandbox"])
    assert.deepStrictEqual(headersOf(one?.[404]), ["x-request-id"])
    assert.deepStrictEqual(headersOf(list?.[200]), ["x-request-id"])
    assert.isUndefined(Reflect.get(Object(found), "content"))
  })

  const generation = Arbitrary.make(Schema.encodedBoundSchema(ImageGenerationRequest))
  const edit = Arbitrary.make(Schema.encodedBoundSchema(ImageEditRequest))
  const creation = Arbitrary.make(Schema.encodedBoundSchema(VideoCreateRequest))

  it("have schemas whose bodies are accepted, except for the content of references", () => {
    const acceptedOf = (
      bodies: FastCheck.Arbitrary<unknown>,
      decode: (body: unknown) => Either.Either<unknown, { readonly param: string | null }>
    ) => {
      let accepted = 0
      const property = FastCheck.property(bodies, (body) => {
        const result = decode(body)
        if (Either.isRight(result)) accepted++
        else assert.match(String(result.left.param), /^(?:image|input_reference)/)
      })
      FastCheck.assert(property)
      return accepted
    }
    const images = [
      acceptedOf(generation, (body) => decodeImageBody(body, { needsReference: false })),
      acceptedOf(edit, (body) => decodeImageBody(body, { needsReference: true }))
    ]
    assert.isAbove(
      images.reduce((sum, accepted) => sum + accepted),
      30
    )
    assert.isAbove(acceptedOf(creation, decodeVideoBody), 15)
  })
})
