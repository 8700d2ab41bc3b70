import { assert, describe, it } from "@effect/vitest"
import { Arbitrary, Either, FastCheck, Schema } from "effect"
import { decodeImageBody } from "../../../src/http/images/Handlers.ts"
import { ImageEditRequest, ImageGenerationRequest } from "../../../src/http/images/Schema.ts"
import { published, schemasOf } from "../../harness/client/Published.ts"
import { gif } from "../../harness/fixtures/ImageBodies.ts"

const models = [
  { id: "c-1", surface: "chat" },
  { id: "i-1", surface: "image" },
  { id: "i-2", surface: "image" }
] as const

const { accepts, document } = published(models)

const asked = { model: "i-1", prompt: "a cat" }
const edited = { ...asked, image: gif }
const operations = ["/images/generations", "/images/edits"].map((path) => ({ path, post: document.paths[path]?.post }))

describe("images in the OpenAPI document", () => {
  it("are asked for in JSON, edits in a form too", () => {
    const reference = (name: string) => ({ $ref: `#/components/schemas/${name}` })
    assert.deepStrictEqual(
      operations.map(({ post }) => schemasOf(post?.requestBody?.content)),
      [
        { "application/json": reference("ImageGenerationRequest") },
        {
          "application/json": reference("ImageEditRequest"),
          "multipart/form-data": reference("ImageEditForm")
        }
      ]
    )
  })

  it("enumerate the image ids of the catalog at hand", () => {
    for (const name of ["ImageGenerationRequest", "ImageEditRequest", "ImageEditForm"]) {
      assert.isTrue(accepts(name, { ...edited, model: "i-2" }), name)
      assert.isFalse(accepts(name, { ...edited, model: "c-1" }), name)
    }
  })

  it("have texts and files in a form", () => {
    assert.isTrue(accepts("ImageEditForm", { ...edited, n: "1" }))
    assert.isFalse(accepts("ImageEditForm", { ...edited, n: 1 }))
  })

  it("are described as they are answered", () => {
    const response = (...data: ReadonlyArray<unknown>) => ({ created: 1, data })
    assert.isTrue(accepts("ImageResponse", response({ url: "https://media.test/a.png" })))
    assert.isTrue(accepts("ImageResponse", response({ b64_json: gif, revised_prompt: "a grey cat" })))
    assert.isFalse(accepts("ImageResponse", response({ url: 1 })))
    assert.isFalse(accepts("ImageResponse", { data: [] }))
  })

  it.each(operations)("$path takes a key and says what became of it", ({ post }) => {
    const [key] = post?.parameters ?? []
    assert.lengthOf(post?.parameters ?? [], 1)
    assert.deepInclude(key, { name: "idempotency-key", in: "header", required: false })
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
    const headers = (status: number) => Object.keys(Reflect.get(Object(post?.responses[status]), "headers"))
    const rated = ["x-request-id", "x-ratelimit-limit", "x-ratelimit-remaining"]
    assert.deepStrictEqual(headers(200), [...rated, "x-gateway-sandbox", "idempotency-replayed"])
    assert.deepStrictEqual(headers(400), rated)
    assert.deepStrictEqual(headers(401), ["x-request-id"])
    assert.deepStrictEqual(headers(409), [...rated, "x-should-retry"])
    for (const status of [429, 500, 503]) assert.deepStrictEqual(headers(status), [...rated, "retry-after"])
  })

  it("take what the contract describes, short of what references must hold", () => {
    let accepted = 0
    const isTaken = (body: unknown, needsReference: boolean) => {
      const result = decodeImageBody(body, { needsReference })
      if (Either.isRight(result)) accepted++
      else assert.match(result.left.message, /^Failed to process the reference image\.$|^`image` is required\.$/)
    }
    const generation = Arbitrary.make(Schema.encodedBoundSchema(ImageGenerationRequest))
    const edit = Arbitrary.make(Schema.encodedBoundSchema(ImageEditRequest))
    FastCheck.assert(FastCheck.property(generation, (body) => isTaken(body, false)))
    FastCheck.assert(FastCheck.property(edit, (body) => isTaken(body, true)))
    assert.isAbove(accepted, 30)
  })
})
