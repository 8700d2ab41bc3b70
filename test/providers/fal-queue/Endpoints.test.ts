import { execFile } from "node:child_process"
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import path from "node:path"
import { Effect, Either } from "effect"
import type { Model } from "../../../src/domain/Model.ts"
import { format } from "../../../src/providers/fal-queue/FalQueue.ts"
import { encodeImage, encodeVideo, type Submission } from "../../../src/providers/jobs/JobAdapter.ts"
import { Catalog } from "../../../src/services/catalog/Catalog.ts"
import { builtIn, options } from "../../harness/fixtures/Catalogs.ts"
import { assert, describe, it } from "../../harness/It.ts"
import { asSent } from "../../harness/upstream/FakeUpstream.ts"
import { tellable } from "../jobs/Hosts.ts"

const root = path.resolve(import.meta.dirname, "../../..")
const picture = { type: "image/png", bytes: Buffer.from("x") } as const
const prompt = "A red bicycle"

/** Models unknown to fal's client, each with a known model that has the same fields. */
const kin: Readonly<Record<string, string>> = {
  "bytedance/seedance-2.0/text-to-video": "fal-ai/bytedance/seedance/v1.5/pro/text-to-video",
  "bytedance/seedance-2.0/image-to-video": "fal-ai/bytedance/seedance/v1.5/pro/image-to-video"
}

/** All requests that the model's routes at fal support. */
const submissions = (model: Model): ReadonlyArray<Submission> => {
  if (model.surface === "image") {
    return model.routes
      .filter(({ provider }) => provider.adapter === "fal-queue")
      .flatMap((route) =>
        tellable(model, route).flatMap((told) =>
          [[], [picture]]
            .filter((references) => references.length === 0 || route.editModel !== undefined)
            .map((references) => Either.getOrThrow(encodeImage(format, route, { prompt, ...told, references })))
        )
      )
  }
  if (model.surface !== "video") return []
  return model.routes.flatMap((route) =>
    route.seconds.flatMap((seconds) =>
      [undefined, picture]
        .filter((reference) => (reference === undefined ? route.referenceImage !== "required" : route.imageModel))
        .map((reference) => Either.getOrThrow(encodeVideo(format, route, { prompt, seconds, reference })))
    )
  )
}

const satisfying = ({ input, model }: Submission) =>
  `${JSON.stringify(asSent(input))} satisfies EndpointTypeMap["${kin[model] ?? model}"]["input"]`

/** Bodies that the types must refuse. Otherwise the types check nothing. */
const wrong: ReadonlyArray<Submission> = [
  { model: "fal-ai/veo3.1", input: { prompt, duration: 8 } },
  { model: "fal-ai/veo3.1", input: { prompt, duration: "5s" } },
  { model: "fal-ai/veo3.1", input: { prompt, seconds: "8s" } },
  { model: "fal-ai/kling-video/v2.6/pro/image-to-video", input: { prompt, image_url: "x" } },
  { model: "fal-ai/nano-banana-pro", input: { prompt, resolution: "8K" } },
  { model: "fal-ai/nowhere", input: { prompt } }
]

const compiled = (source: string) =>
  Effect.acquireUseRelease(
    Effect.sync(() => mkdtempSync(path.join(tmpdir(), "gateway-fal-"))),
    (directory) =>
      Effect.async<string>((resume) => {
        symlinkSync(path.join(root, "node_modules"), path.join(directory, "node_modules"))
        writeFileSync(path.join(directory, "package.json"), '{"type": "module"}')
        writeFileSync(path.join(directory, "bodies.ts"), source)
        const flags = ["--noEmit", "--strict", "--skipLibCheck", "--target", "es2023", "--module", "nodenext"]
        const value = [...flags, "--exactOptionalPropertyTypes", "--ignoreConfig", path.join(directory, "bodies.ts")]
        execFile(path.join(root, "node_modules/.bin/tsc"), value, { cwd: directory }, (error, stdout) =>
          resume(Effect.succeed(error === null ? "" : `${stdout}${error.message}`))
        )
      }),
    (directory) => Effect.sync(() => rmSync(directory, { recursive: true, force: true }))
  )

describe("the built-in catalog's routes at fal", () => {
  it.effect("ask for what the endpoint types of fal's own client say", function* () {
    const environment = { FAL_KEY: "k", GEMINI_API_KEY: "k", OPENAI_API_KEY: "k" }
    const { models } = yield* Catalog.make(options({ text: builtIn, environment }))
    const all = models.flatMap(submissions)
    assert.isAbove(all.length, 60)
    const source = [
      'import type { EndpointTypeMap } from "@fal-ai/client/endpoints"',
      ...all.map((one, index) => `export const body${index} = ${satisfying(one)}`),
      ...wrong.map((one, index) => `// @ts-expect-error\nexport const wrong${index} = ${satisfying(one)}`)
    ].join("\n")
    assert.strictEqual(yield* compiled(source), "")
  })

  it.effect("take each reference under the name that its model has for it", function* () {
    const { models } = yield* Catalog.make(options({ text: builtIn, environment: { FAL_KEY: "k" } }))
    const fields = models.flatMap(submissions).flatMap(({ input, model }) => {
      const field = Object.keys(input).find((name) => JSON.stringify(asSent(input[name])).includes("data:image/png"))
      return field === undefined ? [] : [`${model} ${field}`]
    })
    assert.include(fields, "fal-ai/kling-video/v2.6/pro/image-to-video start_image_url")
    assert.include(fields, "fal-ai/minimax/hailuo-2.3/standard/image-to-video image_url")
    assert.include(fields, "fal-ai/ideogram/v3/remix image_url")
    assert.include(fields, "fal-ai/nano-banana-pro/edit image_urls")
  })
})
