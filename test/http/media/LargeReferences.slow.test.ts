import { writeFile } from "node:fs/promises"
import path from "node:path"
import { Effect, Schema } from "effect"
import { maxReferenceBytes } from "../../../src/domain/Media.ts"
import { bearer, call } from "../../harness/client/HttpCalls.ts"
import { grown } from "../../harness/fixtures/TinyMedia.ts"
import * as Served from "../../harness/gateway/ServedGateway.ts"
import { assert, describe, it } from "../../harness/It.ts"
import { temporaryDirectory } from "../../harness/temporary.ts"

const Painted = Schema.parseJson(Schema.Struct({ data: Schema.Tuple(Schema.Struct({ url: Schema.String })) }))

describe("small chats that name large pictures", () => {
  it.scopedLive("wait for memory as large bodies do, and are refused where none comes free", () =>
    Effect.gen(function* () {
      const directory = yield* temporaryDirectory
      const served = Served.layer(Effect.succeed({ env: { SANDBOX: "true", DATA_DIR: directory } }))
      yield* Effect.gen(function* () {
        const { secret } = yield* Served.customer()
        const headers = { ...bearer(secret), "content-type": "application/json" }
        const send = (endpoint: string, body: unknown) => call(`/v1${endpoint}`, { body, headers })
        const painted = yield* send("/images/generations", {
          model: "gpt-image-2",
          prompt: "a boat",
          response_format: "url"
        })
        const [{ url }] = (yield* Schema.decode(Painted)(painted.text)).data
        const file = path.join(directory, new URL(url).pathname)
        yield* Effect.promise(() => writeFile(file, grown(maxReferenceBytes)))
        const see = (text: string, pictures: number) => {
          const images = Array.from({ length: pictures }, (_, index) => ({
            type: "image_url",
            image_url: { url: `${url}?${index}` }
          }))
          const content = [{ type: "text", text }, ...images]
          return send("/chat/completions", { model: "gemini-3.6-flash", messages: [{ role: "user", content }] })
        }
        // Each takes 80 MiB as base64, and one organization gets 256 MiB.
        const answers = yield* Effect.all(
          Array.from({ length: 6 }, () => see("[sandbox delay=25000]", 3)),
          { concurrency: "unbounded" }
        )
        const statuses = answers.map(({ status }) => status)
        assert.sameMembers([...new Set(statuses)], [200, 503])
        assert.isAtMost(statuses.filter((status) => status === 200).length, 3)
        for (const { headers, status, text } of answers) {
          if (status === 200) continue
          assert.include(text, '"message":"The gateway is busy; retry later."')
          assert.strictEqual(headers.get("retry-after"), "5")
        }
        assert.strictEqual((yield* see("And now?", 3)).status, 200, "the memory is free again")
      }).pipe(Effect.provide(served))
    })
  )
})
