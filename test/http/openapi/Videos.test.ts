import { assert, describe, it } from "@effect/vitest"
import { Arbitrary, Either, FastCheck, Schema } from "effect"
import { decodeVideoBody, videoJson } from "../../../src/http/videos/Handlers.ts"
import { VideoCreateRequest } from "../../../src/http/videos/Schema.ts"
import type { Video } from "../../../src/services/videos/VideoJobs.ts"
import { published, schemasOf } from "../../harness/client/Published.ts"

const models = [
  { id: "c-1", surface: "chat" },
  { id: "v-1", surface: "video" },
  { id: "v-2", surface: "video" }
] as const

const { accepts, document } = published(models)

const asked = { model: "v-1", prompt: "a cat runs" }
const create = document.paths["/videos"]?.post
const video: Video = {
  id: "vid_1",
  model: "v-1",
  status: "queued",
  createdAt: 1,
  completedAt: undefined,
  seconds: 8,
  url: undefined,
  error: undefined,
  sandbox: false
}

describe("videos in the OpenAPI document", () => {
  it("are asked for in JSON or in a form", () => {
    const reference = (name: string) => ({ $ref: `#/components/schemas/${name}` })
    const content = schemasOf(create?.requestBody?.content)
    assert.deepStrictEqual<unknown>(content, {
      "application/json": reference("VideoCreateRequest"),
      "multipart/form-data": reference("VideoCreateForm")
    })
  })

  it("enumerate the video ids of the catalog at hand", () => {
    for (const name of ["VideoCreateRequest", "VideoCreateForm"]) {
      assert.isTrue(accepts(name, { ...asked, model: "v-2" }), name)
      assert.isFalse(accepts(name, { ...asked, model: "c-1" }), name)
    }
  })

  it("have texts and files in a form", () => {
    assert.isTrue(accepts("VideoCreateForm", { ...asked, seconds: "8", n: "1", input_reference: "bytes" }))
    assert.isTrue(accepts("VideoCreateForm", { ...asked, "input_reference[image_url]": "https://a.test/a.png" }))
    for (const wrong of [{ seconds: "8s" }, { n: "2" }, { n: 1 }, { image: 5 }]) {
      assert.isFalse(accepts("VideoCreateForm", { ...asked, ...wrong }), JSON.stringify(wrong))
    }
  })

  it("are described as they are answered", () => {
    const states: ReadonlyArray<Partial<Video>> = [
      {},
      { status: "in_progress" },
      { status: "completed", completedAt: 2, url: "https://media.test/a.mp4" },
      { status: "failed", completedAt: 2, error: { code: "timeout", message: "Too late." } }
    ]
    const all = states.map((state) => videoJson({ ...video, ...state }))
    for (const shown of all) assert.isTrue(accepts("Video", shown))
    assert.isTrue(accepts("VideoList", { object: "list", data: all }))
    for (const name of ["id", "object", "model", "status", "created_at"]) {
      assert.isFalse(accepts("Video", { ...all[0], [name]: undefined }), name)
    }
    assert.isFalse(accepts("Video", { ...all[0], status: "done" }))
  })

  it("say what a creation takes and carries", () => {
    assert.deepStrictEqual(
      create?.parameters.map(({ in: where, name, required }) => [where, name, required]),
      [["header", "idempotency-key", false]]
    )
    const headers = (status: number) => Object.keys(Reflect.get(Object(create?.responses[status]), "headers"))
    const rated = ["x-request-id", "x-ratelimit-limit", "x-ratelimit-remaining"]
    assert.deepStrictEqual(headers(202), [...rated, "x-gateway-sandbox", "idempotency-replayed"])
    assert.deepStrictEqual(headers(400), rated)
    assert.deepStrictEqual(headers(401), ["x-request-id"])
    assert.deepStrictEqual(headers(409), [...rated, "x-should-retry"])
  })

  it("say what a look takes and carries", () => {
    const limit = { type: "integer", minimum: 1, maximum: 100, default: 20 }
    const [parameter, ...others] = document.paths["/videos"]?.get?.parameters ?? []
    assert.deepInclude(parameter, { name: "limit", in: "query", required: false })
    assert.deepInclude(parameter?.schema, limit)
    assert.lengthOf(others, 0)
    const content = document.paths["/videos/{id}/content"]?.get
    assert.deepInclude(content?.parameters[0], { name: "id", in: "path", required: true })
    const found: unknown = content?.responses[302]
    assert.deepStrictEqual(Object.keys(Reflect.get(Object(found), "headers")), ["x-request-id", "location"])
    assert.isUndefined(Reflect.get(Object(found), "content"))
  })

  it("take what the contract describes, short of what references must hold", () => {
    let accepted = 0
    FastCheck.assert(
      FastCheck.property(Arbitrary.make(Schema.encodedBoundSchema(VideoCreateRequest)), (body) => {
        const result = decodeVideoBody(body)
        if (Either.isRight(result)) accepted++
        else assert.strictEqual(result.left.message, "Failed to process the reference image.")
      })
    )
    assert.isAbove(accepted, 15)
  })
})
