import { Effect, Either, ParseResult } from "effect"
import type { ImageRoute, RouteBase, RouteOptions } from "../../src/domain/Model.ts"
import * as Anthropic from "../../src/providers/anthropic/AnthropicRequest.ts"
import * as FalQueue from "../../src/providers/fal-queue/FalQueue.ts"
import * as Gemini from "../../src/providers/gemini/GeminiRequest.ts"
import * as OpenAiImages from "../../src/providers/openai-images/OpenAiImages.ts"
import * as Replicate from "../../src/providers/replicate/Replicate.ts"
import { Catalog } from "../../src/services/catalog/Catalog.ts"
import type { DecodeOptions } from "../../src/services/catalog/EntryFields.ts"
import { routeTo } from "../contracts/ChatHosts.ts"
import { builtIn, options as catalogOptions, wrongOptions } from "../harness/fixtures/Catalogs.ts"
import { assert, describe, it } from "../harness/It.ts"
import { anthropic } from "../providers/anthropic/Wire.ts"
import { videoRoute } from "../providers/fal-queue/Hosts.ts"
import { registered } from "../providers/Registered.ts"
import { clipRoute } from "../providers/replicate/Hosts.ts"
import { fences, linkedSection, page, section, table } from "./Markdown.ts"

const providers = page("docs/providers.md")
const adapters = await Effect.runPromise(registered)

/** What else is held to the docs. */
interface Special {
  /** Where any other option is a field of the request. */
  readonly names?: ReadonlyArray<string>
  /** Options that take one of some words. */
  readonly words?: Readonly<Record<string, ReadonlyArray<string>>>
  /** Options that are refused by their names. */
  readonly wrong?: RouteOptions
  /** Words of the docs about an option, as the code has them. */
  readonly defaults?: Readonly<Record<string, string>>
  /** What each route of the built-in catalog and of the example says. */
  readonly assertRoute?: (route: RouteBase, surface: string) => void
}

const anthropicDefaults = Anthropic.options.of(routeTo(anthropic))
const falDefaults = FalQueue.options.of(videoRoute("https://queue.fal.run"))
const replicateDefaults = Replicate.options.of(clipRoute("https://api.replicate.com"))

const special: Readonly<Record<string, Special>> = {
  "openai-chat": {
    words: {
      cache: ["none", "manual", "auto", "breakpoints"],
      cache_key: ["none", "prompt_cache_key", "x-grok-conv-id"],
      search_fee: ["search", "request"]
    }
  },
  anthropic: {
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
    assertRoute: ({ id, options }) => assert.isDefined(options.thinking, id)
  },
  gemini: {
    words: { thinking: ["level", "budget", "none"], api: ["generate", "predict"] },
    wrong: { image_sizes: false, aspect_ratio: "wide", call_signatures: "no" },
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
    words: { reasoning_summary: ["auto", "concise", "detailed", "none"], cache: ["none", "breakpoints"] },
    wrong: { inline_image: true, web_search: "yes" }
  },
  "openai-images": {
    words: {
      quality: ["auto", "low", "medium", "high", "standard"],
      background: ["auto", "opaque", "transparent"],
      output_format: ["png", "jpeg", "webp"],
      moderation: ["auto", "low"],
      response_format: ["b64_json"],
      edits: ["multipart", "json"],
      image_field: ["image[]", "image"]
    },
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
    defaults: {
      seconds_field: `default \`${replicateDefaults.seconds_field}\``,
      size_field: `default \`${replicateDefaults.size_field}\``,
      image_list: "default `true` for `image_input` and names that end in `s`"
    }
  },
  "fal-queue": {
    names: [...FalQueue.optionNames],
    defaults: {
      seconds_field: `default \`${falDefaults.seconds_field}\``,
      size_field: `default \`${falDefaults.size_field}\``
    }
  }
}

/** The names that an adapter knows; undefined where it takes any. */
const namesOf = (decode: DecodeOptions): ReadonlyArray<string> | undefined =>
  Either.match(decode({ "": 0 }), {
    onLeft: (error) =>
      ParseResult.ArrayFormatter.formatErrorSync(error).flatMap(({ message, path }) =>
        path.join() === "" ? Array.from(message.matchAll(/"(\w+)"/g), ([, name = ""]) => name) : []
      ),
    onRight: () => undefined
  })

const sections = new Map(
  table(section(providers, "Wire formats"), "`adapter`").map(([name = "", speaks = ""]) => [name, speaks])
)

/** The options that several adapters have, with the adapters of each. */
const common = table(section(providers, "Common options"), "Option").map(([cell = "", those = "", effect = ""]) => ({
  cell,
  adapters: those.split("`"),
  effect
}))

/** The options in the section that the adapter's row links to, and the common ones that name the adapter. */
const documentedOf = (adapter: string): ReadonlyMap<string, string> => {
  const text = linkedSection(providers, sections.get(adapter) ?? assert.fail(`${adapter} has no row`))
  const own = text.includes("| Option |") ? table(text, "Option") : []
  const shared = common.filter(({ adapters }) => adapters.includes(adapter)).map(({ cell, effect }) => [cell, effect])
  return new Map([...own, ...shared].map(([cell = "", effect = ""]) => [/^\w*/.exec(cell)?.[0] ?? "", effect]))
}

const checkOptions = (adapter: string, decode: DecodeOptions) => {
  const { assertRoute, defaults = {}, names = namesOf(decode), words = {}, wrong = {} } = special[adapter] ?? {}

  it("are those of the docs", () =>
    assert.sameMembers([...documentedOf(adapter).keys()], [...(names ?? assert.fail("any name is taken"))]))

  for (const [name, values] of Object.entries(words)) {
    it(`take for ${name} what the docs say, and nothing else`, () => {
      const takes = (value: string) => Either.isRight(decode({ [name]: value }))
      const told = new Set(documentedOf(adapter).get(name)?.split("`"))
      for (const value of values) assert.deepStrictEqual([takes(value), told.has(value)], [true, true], value)
      assert.isFalse(takes("another"))
    })
  }

  for (const [name, words] of Object.entries(defaults)) {
    it(`have the default of the docs for ${name}`, () => assert.include(documentedOf(adapter).get(name), words))
  }

  for (const name of Object.keys(wrong)) {
    it(`are refused by name where ${name} is misspelt or has another value`, () =>
      assert.include(wrongOptions(decode(wrong)), name))
  }

  const spoken = `adapter: ${adapter}`
  const example = fences(providers, "yaml").find((block) => block.includes(spoken)) ?? ""
  for (const [name, text] of [
    ...(builtIn.includes(spoken) ? [["the built-in catalog", builtIn] as const] : []),
    ["the example", example] as const
  ]) {
    it.effect(`are well-formed on every route of ${name}`, function* () {
      assert.isNotEmpty(text, `docs/providers.md has no catalog with ${spoken}`)
      const environment = Object.fromEntries([...text.matchAll(/credential: (\w+)/g)].map(([, key]) => [key, "k"]))
      const { models } = yield* Catalog.make(catalogOptions({ text, environment, adapters }))
      const routes = models.flatMap(({ routes, surface }) => routes.map((route) => ({ route, surface })))
      const own = routes.filter(({ route }) => route.provider.adapter === adapter)
      assert.isNotEmpty(own)
      for (const { route, surface } of own) {
        assert.isTrue(Either.isRight(decode(route.options)), route.id)
        assertRoute?.(route, surface)
      }
    })
  }
}

for (const [adapter, { options }] of adapters) {
  if (options !== undefined) describe(`the options of ${adapter}`, () => checkOptions(adapter, options))
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
