import { Either, type ParseResult } from "effect"
import type { ImageRoute, RouteBase, RouteOptions } from "../../src/domain/Model.ts"
import * as Anthropic from "../../src/providers/anthropic/Options.ts"
import * as FalQueue from "../../src/providers/fal-queue/FalQueue.ts"
import * as Gemini from "../../src/providers/gemini/Options.ts"
import * as OpenAiImages from "../../src/providers/openai-images/Options.ts"
import * as OpenAiResponses from "../../src/providers/openai-responses/Options.ts"
import * as Replicate from "../../src/providers/replicate/Replicate.ts"
import { Catalog } from "../../src/services/catalog/Catalog.ts"
import { routeTo } from "../contracts/ChatHosts.ts"
import { builtIn, options as catalogOptions } from "../harness/fixtures/Catalogs.ts"
import { wrongOptions } from "../harness/fixtures/WrongOptions.ts"
import { assert, describe, it } from "../harness/It.ts"
import { anthropic } from "../providers/anthropic/Wire.ts"
import { videoRoute } from "../providers/fal-queue/Hosts.ts"
import { clipRoute } from "../providers/replicate/Hosts.ts"
import { fences, page, section, table } from "./Markdown.ts"

const providers = page("docs/providers.md")

interface Adapter {
  readonly section: string
  readonly names: ReadonlyArray<string>
  readonly decode: (options: RouteOptions) => Either.Either<unknown, ParseResult.ParseError>
  /** Options that take one of some words. */
  readonly words: Readonly<Record<string, ReadonlyArray<string>>>
  /** Options that are refused by their names. */
  readonly wrong: RouteOptions
  /** Words of the docs about an option, as the code has them. */
  readonly defaults: Readonly<Record<string, string>>
  /** What each route of the built-in catalog and of the example says. */
  readonly assertRoute: (route: RouteBase, surface: string) => void
}

const decodes = (decoder: { readonly of: (route: RouteBase) => unknown }) => (route: RouteBase) =>
  void decoder.of(route)

const anthropicDefaults = Anthropic.options.of(routeTo(anthropic))
const falDefaults = FalQueue.options.of(videoRoute("https://queue.fal.run"))
const replicateDefaults = Replicate.options.of(clipRoute("https://api.replicate.com"))

const adapters: Readonly<Record<string, Adapter>> = {
  anthropic: {
    section: "Anthropic's Messages API",
    names: Object.keys(Anthropic.Options.fields),
    decode: Anthropic.options.decode,
    words: {
      auth: ["x-api-key", "bearer"],
      thinking: ["adaptive", "budget", "always"],
      thinking_off: ["disabled", "between_tools"],
      cache: ["manual", "auto"]
    },
    wrong: { thinkin: "budget" },
    defaults: {
      auth: `\`${anthropicDefaults.auth}\` (default)`,
      thinking: `\`${anthropicDefaults.thinking}\` (default)`,
      cache: `\`${anthropicDefaults.cache}\` (default)`,
      version: `\`${anthropicDefaults.version}\` (default)`
    },
    assertRoute: (route) => {
      Anthropic.options.of(route)
      assert.isDefined(route.options.thinking, route.id)
    }
  },
  gemini: {
    section: "Google's Gemini API",
    names: Object.keys(Gemini.Options.fields),
    decode: Gemini.options.decode,
    words: { thinking: ["level", "budget", "none"], api: ["generate", "predict"] },
    wrong: { image_sizes: false, aspect_ratio: "wide", call_signatures: "no" },
    defaults: {},
    assertRoute: (route, surface) => {
      const { api, image_size, thinking = "level" } = Gemini.options.of(route)
      if (surface === "chat") {
        assert.strictEqual(thinking, route.model.startsWith("gemini-2.5") ? "budget" : "level", route.id)
      } else {
        assert.strictEqual(api === "predict", route.model.startsWith("imagen"), route.id)
        assert.strictEqual(image_size === false, route.model.startsWith("gemini-2.5"), route.id)
      }
    }
  },
  "openai-responses": {
    section: "A host that speaks OpenAI's Responses API",
    names: Object.keys(OpenAiResponses.Options.fields),
    decode: OpenAiResponses.options.decode,
    words: { reasoning_summary: ["auto", "concise", "detailed", "none"], cache: ["none", "breakpoints"] },
    wrong: { inline_image: true, web_search: "yes" },
    defaults: {},
    assertRoute: decodes(OpenAiResponses.options)
  },
  "openai-images": {
    section: "A host that speaks OpenAI's images API",
    names: Object.keys(OpenAiImages.Options.fields),
    decode: OpenAiImages.options.decode,
    words: {
      quality: ["auto", "low", "medium", "high", "standard"],
      background: ["auto", "opaque", "transparent"],
      output_format: ["png", "jpeg", "webp"],
      moderation: ["auto", "low"],
      response_format: ["b64_json"],
      edits: ["multipart", "json"],
      image_field: ["image[]", "image"]
    },
    wrong: {},
    defaults: {},
    assertRoute: (route) => {
      const { quality, size, sizes } = OpenAiImages.options.of(route)
      assert.oneOf(quality, ["low", "medium", "high"], route.id)
      const { resolutions = new Set() }: Partial<ImageRoute> = route
      assert.isAbove(resolutions.size, 0)
      for (const resolution of resolutions) {
        assert.match(sizes?.[resolution] ?? size ?? "", /^\d+x\d+$/, `${route.id} ${resolution}`)
      }
    }
  },
  replicate: {
    section: "Models of Replicate",
    names: Object.keys(Replicate.Options.fields),
    decode: Replicate.options.decode,
    words: {},
    wrong: {},
    defaults: {
      seconds_field: `default \`${replicateDefaults.seconds_field}\``,
      size_field: `default \`${replicateDefaults.size_field}\``,
      image_list: "default `true` for `image_input` and names that end in `s`"
    },
    assertRoute: decodes(Replicate.options)
  },
  "fal-queue": {
    section: "Models of fal.ai",
    names: [...FalQueue.optionNames],
    decode: FalQueue.options.decode,
    words: {},
    wrong: {},
    defaults: {
      seconds_field: `default \`${falDefaults.seconds_field}\``,
      size_field: `default \`${falDefaults.size_field}\``
    },
    assertRoute: decodes(FalQueue.options)
  }
}

const environment = Object.fromEntries(
  ["ANTHROPIC", "CLAUDE", "FAL", "GEMINI", "OPENAI", "PAINTER", "THINKER"].map((name) => [`${name}_API_KEY`, "k"])
)
const keys = { ...environment, FAL_KEY: "k", REPLICATE_API_TOKEN: "k" }

for (const [adapter, { assertRoute, decode, defaults, names, section: heading, words, wrong }] of Object.entries(
  adapters
)) {
  describe(`the options of ${adapter}`, () => {
    const documented = new Map(
      table(section(providers, heading), "Option").map(([name = "", effect = ""]) => [name, effect])
    )

    it("are those of the docs", () => assert.sameMembers([...documented.keys()], [...names]))

    for (const [name, values] of Object.entries(words)) {
      it(`take for ${name} what the docs say, and nothing else`, () => {
        const takes = (value: string) => Either.isRight(decode({ [name]: value }))
        const told = new Set(documented.get(name)?.split("`"))
        for (const value of values) assert.deepStrictEqual([takes(value), told.has(value)], [true, true], value)
        assert.isFalse(takes("another"))
      })
    }

    for (const [name, words] of Object.entries(defaults)) {
      it(`have the default of the docs for ${name}`, () => assert.include(documented.get(name), words))
    }

    for (const name of Object.keys(wrong)) {
      it(`are refused by name where ${name} is misspelt or has another value`, () =>
        assert.include(wrongOptions(decode(wrong)), name))
    }

    for (const [name, text] of [
      ["the built-in catalog", builtIn],
      ["the example", fences(providers, "yaml").find((block) => block.includes(`adapter: ${adapter}`)) ?? ""]
    ] as const) {
      it.effect(`are well-formed on every route of ${name}`, function* () {
        const { models } = yield* Catalog.make(catalogOptions({ text, environment: keys }))
        let checked = 0
        for (const { routes, surface } of models) {
          for (const route of routes.filter(({ provider }) => provider.adapter === adapter)) {
            assertRoute(route, surface)
            checked++
          }
        }
        assert.isAbove(checked, 0)
      })
    }
  })
}

it("the options of replicate take a list of images by the name of their field", () => {
  const { isList } = replicateDefaults
  assert.deepStrictEqual(["image_input", "input_images", "image", "start_image"].map(isList), [
    true,
    true,
    false,
    false
  ])
})

it("the options of gemini take a ratio", () =>
  assert.isTrue(Either.isRight(Gemini.options.decode({ aspect_ratio: "16:9" }))))
