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
      first: Option.none(),
      examples: { organization: Option.none(), operator: Option.none() }
    })
      .split("\n")
      .filter((line) => line.includes("sandbox"))
  )

const second = 'second: {adapter: openai-chat, base_url: "http://127.0.0.1:9/v1", credential: SECOND_KEY}'

const answersFor = (models: string) =>
  `The sandbox serves ${models}. It serves mock responses, charges for them, and calls no provider.`

const isRouteOf = (models: string) =>
  `The sandbox is also a route of ${models} with real providers. It serves mock responses and charges for them.`

describe("the banner", () => {
  it.effect("does not name the sandbox if no model has a route to it", function* () {
    assert.deepStrictEqual(yield* sandboxLines({ environment: keys }), [])
  })

  it.effect("prints commands with existing names, quoted for a shell", function* () {
    const catalog = yield* load({ environment: keys })
    const printed = (organization?: string, operator?: string) =>
      banner({
        settings: { databaseUrl: undefined, dataDir: ".data" },
        url: "http://127.0.0.1:8787",
        catalog,
        first: Option.none(),
        examples: { organization: Option.fromNullable(organization), operator: Option.fromNullable(operator) }
      })
        .split("\n")
        .flatMap((line) => line.split(/gateway (?=keys|operators|orgs)/).slice(1))
    assert.deepStrictEqual(printed("demo", "admin"), [
      "keys create --org demo",
      "operators link admin",
      "operators create alice --role read"
    ])
    assert.deepStrictEqual(printed("Tim's shop", "a b").slice(0, 2), [
      "keys create --org 'Tim'\\''s shop'",
      "operators link 'a b'"
    ])
    assert.deepStrictEqual(printed(), ["orgs create acme --credits 25", "operators create admin --role owner"])
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
