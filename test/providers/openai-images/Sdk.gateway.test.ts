import { Effect } from "effect"
import OpenAI, { APIError, toFile } from "openai"
import * as OpenAiImages from "../../../src/providers/openai-images/OpenAiImages.ts"
import { picture, request } from "../../contracts/ImageHarness.ts"
import { secret, services } from "../../contracts/MediaHarness.ts"
import { calling, thrownBy } from "../../harness/client/OfficialClients.ts"
import { assert, describe, it, liveOver } from "../../harness/It.ts"
import { errors, ownHost } from "./Hosts.ts"

const clientOf = (url: string) => new OpenAI({ apiKey: secret, baseURL: `${url}/v1`, maxRetries: 0 })

const painting = { bytes: picture("image/png", 1).bytes, revisedPrompt: "A crimson bicycle", where: "inside" } as const
const expected = Buffer.from(painting.bytes).toString("base64")

const adapter = Effect.flatMap(OpenAiImages.make, ({ image }) =>
  image === undefined ? Effect.dieMessage("no images") : Effect.succeed(image)
)

/** Checks the contract's fake host with OpenAI's client, so its replies are realistic. */
describe("our own openai-images host", () => {
  liveOver(services)("gives the official client a picture, and takes its request for ours", function* () {
    const host = yield* ownHost
    yield* host.answer(painting)
    const { model, ...chatRequest } = { model: host.route.model, prompt: "Zürich\r\n👋", n: 1 as const }
    const answer = yield* calling(() => clientOf(host.fake.url).images.generate({ model, ...chatRequest }))
    assert.deepInclude(answer.data?.[0], { b64_json: expected, revised_prompt: painting.revisedPrompt })
    assert.strictEqual(answer.usage?.total_tokens, 281)
    const theirs = yield* host.received
    yield* host.answer(painting)
    yield* (yield* adapter).generate(host.route, request({ prompt: chatRequest.prompt }))
    assert.deepStrictEqual(yield* host.received, theirs)
  })

  for (const count of [1, 3]) {
    liveOver(services)(`takes the official client's edit of ${count} for ours`, function* () {
      const host = yield* ownHost
      const references = [picture("image/png", 1), picture("image/jpeg", 2), picture("image/webp", 3)].slice(0, count)
      const { editModel = "" } = host.route
      yield* host.answer(painting)
      const files = yield* Effect.promise(() =>
        Promise.all(references.map(({ bytes, type }) => toFile(bytes, "reference", { type })))
      )
      const [first] = files
      const image = count === 1 && first !== undefined ? first : files
      const answer = yield* calling(() =>
        clientOf(host.fake.url).images.edit({ model: editModel, prompt: "Blue", image, n: 1 })
      )
      assert.strictEqual(answer.data?.[0]?.b64_json, expected)
      const theirs = yield* host.received
      assert.lengthOf(theirs.references ?? [], count)
      yield* host.answer(painting)
      yield* (yield* adapter).generate(host.route, request({ prompt: "Blue", references }))
      assert.deepStrictEqual(yield* host.received, theirs)
    })
  }

  it.scopedLive("gives the official client a URL", function* () {
    const host = yield* ownHost
    yield* host.answer({ ...painting, where: "own" })
    const answer = yield* calling(() => clientOf(host.fake.url).images.generate({ prompt: "x" }))
    assert.match(answer.data?.[0]?.url ?? "", /^http:\/\/127\.0\.0\.1:\d+\/pictures\//)
  })

  for (const fault of ["limit", "funds", "key", "request", "image", "moderation", "server", "missing"] as const) {
    const { error, status } = errors[fault]
    it.scopedLive(`says ${fault} as the official client reads it`, function* () {
      const host = yield* ownHost
      yield* host.fail(fault)
      const thrown = yield* thrownBy(() => clientOf(host.fake.url).images.generate({ prompt: "x" }))
      if (!(thrown instanceof APIError)) return assert.fail(`not an API error: ${String(thrown)}`)
      assert.deepStrictEqual([thrown.status, thrown.code, thrown.type], [status, error.code, error.type])
    })
  }
})
