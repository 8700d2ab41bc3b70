import { Effect, Option } from "effect"
import { banner } from "../src/Banner.ts"
import { edited, keys, load } from "./harness/fixtures/Catalogs.ts"
import { assert, describe, it } from "./harness/It.ts"

/** The lines about the sandbox at a start with this catalog. */
const sandboxLines = (options: Parameters<typeof load>[0]) =>
  Effect.map(load(options), (catalog) =>
    banner({
      settings: { databaseUrl: undefined, dataDir: ".data" },
      url: "http://127.0.0.1:8787",
      catalog,
      first: Option.none()
    })
      .split("\n")
      .filter((line) => line.includes("sandbox"))
  )

const second = 'second: {adapter: openai-chat, base_url: "http://127.0.0.1:9/v1", credential: SECOND_KEY}'

const answersFor = (models: string) =>
  `The sandbox answers for ${models}. Its answers are made up, and charged; no provider is called.`

const isRouteOf = (models: string) =>
  `The sandbox is also a route of ${models} with real providers. Its answers are made up, and charged.`

describe("the banner", () => {
  it.effect("does not name the sandbox if no model has a route to it", function* () {
    assert.deepStrictEqual(yield* sandboxLines({ environment: keys }), [])
  })

  it.effect("counts the models that only the sandbox serves", function* () {
    assert.deepStrictEqual(yield* sandboxLines({ sandbox: true }), [answersFor("3 models")])
    const environment = { SECOND_KEY: "key" }
    assert.deepStrictEqual(yield* sandboxLines({ environment, sandbox: true }), [answersFor("2 models")])
  })

  it.effect("warns of a model with routes to real providers and to the sandbox", function* () {
    const text = edited(second, "second: {adapter: sandbox}")
    assert.deepStrictEqual(yield* sandboxLines({ text, environment: keys }), [isRouteOf("1 model")])
    const { CLIPS_KEY: _, ...environment } = keys
    assert.deepStrictEqual(yield* sandboxLines({ text, environment, sandbox: true }), [
      answersFor("2 models"),
      isRouteOf("1 model")
    ])
  })
})
