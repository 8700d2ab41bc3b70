import { Context, Effect, Layer, Schema, Struct } from "effect"
import type { ListedModel } from "../../../src/domain/ListedModel.ts"
import { ChatCompletionRequest } from "../../../src/http/chat/ChatBody.ts"
import { ImageGenerationRequest } from "../../../src/http/images/ImageBody.ts"
import { ModelList } from "../../../src/http/models/ModelSchema.ts"
import { VideoCreateRequest } from "../../../src/http/videos/VideoBody.ts"
import { type Account, openAccount } from "../../harness/client/Account.ts"
import { bearer, call, post } from "../../harness/client/HttpCalls.ts"
import { dataUrl, png } from "../../harness/fixtures/TinyMedia.ts"
import * as Served from "../../harness/gateway/ServedGateway.ts"
import { assert, withLayer } from "../../harness/It.ts"

class Listed extends Context.Tag("test/Listed")<
  Listed,
  { readonly account: Account; readonly models: ReadonlyArray<ListedModel> }
>() {}

const listed = Layer.effect(
  Listed,
  Effect.gen(function* () {
    const account = yield* openAccount({ nanoUsd: 1_000_000_000_000_000n, rpm: 1_000_000 })
    const { text } = yield* call("/v1/models", { headers: bearer(account.secret) })
    const decode = Schema.decodeUnknown(Schema.parseJson(ModelList), { onExcessProperty: "error" })
    return { account, models: (yield* decode(text)).data }
  })
)

const paths = { chat: "/v1/chat/completions", image: "/v1/images/generations", video: "/v1/videos" }
const fields = {
  chat: Object.keys(ChatCompletionRequest.fields),
  image: Object.keys(ImageGenerationRequest.fields),
  video: Object.keys(VideoCreateRequest.fields)
}

const Refused = Schema.parseJson(Schema.Struct({ error: Schema.Struct({ param: Schema.NullOr(Schema.String) }) }))

/** Sends what only some models can do: the status, and the field that a refusal names. */
const send = Effect.fnUntraced(function* ({ id, surface }: ListedModel, more: object) {
  const { account } = yield* Listed
  const asked = surface === "chat" ? { messages: [{ role: "user", content: "hi" }] } : { prompt: "a cat" }
  const { status, text } = yield* post(paths[surface])(account, { model: id, ...asked, ...more })
  if (status !== 400) return { status, text, param: undefined }
  return { status, text, param: (yield* Schema.decodeUnknown(Refused)(text)).error.param }
})

const picture = dataUrl(png, "image/png")
const look = [{ role: "user", content: [{ type: "image_url", image_url: { url: picture } }] }]
const tools = [{ type: "function", function: { name: "get_time" } }]

/** Of each capability: the request for it, what its answer shows, and the field that a refusal names. */
const chats = [
  { capability: "tools", body: { tools, tool_choice: "required" }, shows: /"tool_calls":\[/, param: "tools" },
  { capability: "vision", body: { messages: look }, shows: /"content":"/, param: "messages" },
  {
    capability: "response_format",
    body: { response_format: { type: "json_object" } },
    shows: /"content":"\{/,
    param: "response_format"
  },
  { capability: "web_search", body: { web_search: true }, shows: /"content":"/, param: "web_search" },
  {
    capability: "reasoning",
    body: { reasoning_effort: "low" },
    shows: /"reasoning_content":"/,
    param: "reasoning_effort"
  }
] as const

const gateway = listed.pipe(Layer.provideMerge(Served.layer(Effect.succeed({ env: { SANDBOX: "true" } }))))

withLayer(gateway)("what the list says of a model", (it) => {
  it.effect("is typed by the published schema for every model of the built-in catalog", function* () {
    const { models } = yield* Listed
    assert.lengthOf(models, 45)
    for (const { id, params, supported_parameters, surface } of models) {
      assert.includeMembers(fields[surface], [...supported_parameters], id)
      assert.includeMembers([...supported_parameters], params.map(Struct.get("key")), id)
    }
  })

  it.effect.each(chats)("holds of a chat that needs $capability", function* ({ body, capability, param, shows }) {
    const { models } = yield* Listed
    for (const model of models.filter(({ surface }) => surface === "chat")) {
      const answer = yield* send(model, body)
      const can = model.capabilities.includes(capability)
      assert.strictEqual(answer.status, can ? 200 : 400, `${model.id}: ${answer.text}`)
      if (can) assert.match(answer.text, shows, model.id)
      else assert.strictEqual(answer.param, param, model.id)
    }
  })

  it.effect("holds of an image: edits, their references, and how many images", function* () {
    const { models } = yield* Listed
    for (const model of models) {
      if (model.image === undefined) continue
      const { max_n, max_references } = model.image
      const canEdit = model.capabilities.includes("edit")
      assert.strictEqual(max_references > 0, canEdit, model.id)
      assert.strictEqual(model.architecture.input_modalities.includes("image"), canEdit, model.id)
      const images = (count: number) => ({ image: Array.from({ length: count }, () => picture) })
      const most = yield* send(model, images(max_references))
      assert.strictEqual(most.status, 200, `${model.id}: ${most.text}`)
      for (const [more, param] of [
        [images(max_references + 1), "image"],
        [{ n: max_n + 1 }, "n"]
      ] as const) {
        assert.deepInclude(yield* send(model, more), { status: 400, param }, model.id)
      }
    }
  })

  it.effect("holds of a video: its lengths, and whether it takes a reference image", function* () {
    const { models } = yield* Listed
    for (const model of models) {
      if (model.video === undefined) continue
      const { reference_image: reference, seconds } = model.video
      const start = reference === "required" ? { image: picture } : {}
      for (const length of seconds.allowed) {
        const { status, text } = yield* send(model, { ...start, seconds: length })
        assert.strictEqual(status, 202, `${model.id}: ${text}`)
        assert.include(text, `"seconds":${length}`, model.id)
      }
      assert.include((yield* send(model, start)).text, `"seconds":${seconds.default}`, model.id)
      const without = yield* send(model, {})
      assert.strictEqual(without.status, reference === "required" ? 400 : 202, model.id)
      const withImage = yield* send(model, { image: picture })
      assert.strictEqual(withImage.status, reference === "none" ? 400 : 202, model.id)
    }
  })
})
