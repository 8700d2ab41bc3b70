import { NodeContext } from "@effect/platform-node"
import { Effect } from "effect"
import { readCatalogFile } from "../../../src/services/catalog/Catalog.ts"
import { edited, lineOf, problemsOf, small } from "../../harness/fixtures/Catalogs.ts"
import { assert, describe, it } from "../../harness/It.ts"

describe("a wrong catalog", () => {
  const decimal = "must be a plain decimal of USD with at most nine places, such as 0.15"
  const address = "must be an http or https address without user, query or fragment"
  /** Of the prompt's price: what stands in place of 1.5. */
  const prices = [
    ["1.5e0", decimal],
    ["0.0000000001", decimal],
    ["-1", "must not be negative"],
    ["2000000", "must be at most 1000000 USD"],
    ["cheap", 'expected a number, actual "cheap"']
  ].map(([price, message]) => ({
    from: "prompt_per_1m_usd: 1.5\n",
    to: `prompt_per_1m_usd: ${price}\n`,
    key: "models[0].pricing.prompt_per_1m_usd",
    message
  }))
  /** What is replaced by what, the key that is named, and what is said of it. */
  const others = [
    ["prompt_per_1m_usd: 1.5\n      ", "", "models[0].pricing.prompt_per_1m_usd", "is missing"],
    ["max_output: 64000", "max_ouput: 64000", "models[0].max_ouput", "unknown key"],
    ["    max_output: 64000\n", "", "models[0]", "max_output is missing: add it to the model or to its family"],
    ["max_output: 64000", "max_output: 64000.5", "models[0].max_output", "must be an integer of 1 to 1000000000"],
    ["max_output: 64000", "max_output: 2000000", "models[0].max_output", "must not exceed context_length"],
    ["family: A", "family: Z", "models[0].family", "unknown family Z; known: A, C"],
    ["surface: chat", "surface: talk", "models[0].surface", 'expected "chat" | "image" | "video", actual "talk"'],
    [
      "[low, medium, high]",
      "[low, huge]",
      "models[0].reasoning",
      "must be none, binary, or a list of low, medium, high, xhigh"
    ],
    [
      "[tools, vision, web_search]",
      "[tools, vison]",
      "models[0].capabilities[1]",
      "must be one of tools, vision, response_format, web_search"
    ],
    [
      "capabilities: [tools], reasoning: none",
      "capabilities: [response_format]",
      "models[0].routes[2].capabilities",
      "the model itself does not have response_format: add it to capabilities of the model, or leave it out here"
    ],
    ["created: 2026-07-21", "created: 2026-02-30", "models[0].created", "must be a date such as 2026-07-21"],
    ["weight: 3", "weight: 0", "models[0].routes[1].weight", "must be an integer of 1 to 1000000"],
    [
      "provider: second, model: v/talk",
      "provider: secnd, model: v/talk",
      "models[0].routes[2].provider",
      "unknown provider secnd; known: first, second, clips: name one of them, or add it to providers"
    ],
    [
      "provider: second, model: v/talk",
      "provider: clips, model: v/talk",
      "models[0].routes[2].provider",
      "clips speaks fal-queue, which has no chat models: name a provider with one of the adapters openai-chat, openai-responses, gemini, anthropic, sandbox"
    ],
    ["- id: film", "- id: draw", "models[2].id", "draw is the id of models[1] too"],
    ["- id: film", "- id: two words", "models[2].id", "must be letters, digits and . _ - : / only"],
    ["default: 8}", "default: 7}", "models[2].seconds.default", "must be one of allowed"],
    ["allowed: [8, 4, 6]", "allowed: [8, 4, 4]", "models[2].seconds.allowed", "4 stands twice"],
    [
      "pricing: {per_second_usd: 0.1}",
      "pricing: {}",
      "models[2].pricing",
      "give exactly one of per_second_usd and per_video_usd"
    ],
    ["pricing: {per_second_usd: 0.1}\n    ", "", "models[2].pricing", "is missing"],
    [
      "reference_image: optional",
      "reference_image: none",
      "models[2].routes[0].image_model",
      "takes no reference image: leave image_model out, or change reference_image"
    ],
    [
      'seconds_as: "8s"',
      'seconds_as: "8min"',
      "models[2].routes[0].seconds_as",
      'must be none, or written as 8, "8" or "8s"'
    ],
    ['seconds_as: "8s"', "seconds: [5]", "models[2].routes[0].seconds", "the model itself does not have 5"],
    ["{resolution: 4K, price_usd", "{resolution: 1K, price_usd", "models[1].variants", "resolution 1K stands twice"],
    [
      "    edit: true\n",
      "",
      "models[1].routes[0]",
      "the model has no edit: true: add it, or leave edit and edit_model out here"
    ],
    [
      "edit_model: v/draw/edit}",
      "edit_model: v/draw/edit, resolutions: [1K]}",
      "models[1].routes",
      "no route serves resolutions 4K of the model: add it to resolutions of a route, or leave it out of the model"
    ],
    [
      "routes: [{provider: clips, model: v/draw, edit_model: v/draw/edit}]",
      "routes: []",
      "models[1].routes[0]",
      "is missing"
    ],
    [
      "adapter: fal-queue",
      "adapter: fal",
      "providers.clips.adapter",
      "unknown adapter fal; known: openai-chat, openai-images, fal-queue, openai-responses, gemini, anthropic, replicate, sandbox"
    ],
    ["base_url: https://clips.test, ", "", "providers.clips", "base_url is missing: add base_url: https://"],
    ["https://clips.test", "ftp://clips.test", "providers.clips.base_url", address],
    ["https://clips.test", "https://user:pw@clips.test", "providers.clips.base_url", address],
    ["  clips: {adapter", "  sandbox: {adapter", "providers.sandbox", "the name sandbox is kept for adapter: sandbox"],
    ["{x-team: blue}", "5", "providers.first.headers", "must be a mapping"],
    ...["5", "five", "[five]"].flatMap((options) => [
      ["{retries: 5}", options, "models[0].routes[0].options", "must be a mapping"] as const,
      [
        "{max_tokens_field: max_completion_tokens, retries: 2}",
        options,
        "providers.first.options",
        "must be a mapping"
      ] as const
    ]),
    ["x-team: blue", "x-team: 7", "providers.first.headers.x-team", "expected string, actual 7"],
    ["sampling: true", "sampling: yes", "families.A.sampling", 'expected boolean, actual "yes"'],
    ["families:", "familys:", "familys", "unknown key; known: providers, models, families"]
  ] as const
  const mistakes = [...prices, ...others.map(([from, to, key, message]) => ({ from, to, key, message }))]

  for (const { from, key, message, to } of mistakes) {
    it.effect(`is refused at ${key}: ${message}`, function* () {
      const lines = yield* problemsOf(edited(from, to))
      const found = lines.find((line) => line.includes(`: ${key}: ${message}`))
      assert.isDefined(found, lines.join("\n"))
    })
  }

  it.effect("is refused where a second document begins", function* () {
    const lines = yield* problemsOf(edited("families:", "---\nfamilies:"))
    assert.isTrue(lines[0]?.endsWith(": must be one document, without a line ---"), lines.join("\n"))
  })

  it.effect("is refused with all its problems and their lines, in order", function* () {
    const text = edited("max_output: 64000", "max_ouput: 64000")
      .replace("      prompt_per_1m_usd: 1.5\n", "")
      .replace("default: 8}", "default: 7}")
      .replace("credential: CLIPS_KEY", "credentials: CLIPS_KEY")
    const lines = yield* problemsOf(text)
    const where = (part: string) => `catalog.yaml:${lineOf(text, part)}`
    assert.deepStrictEqual(
      lines.map((line) => line.split(": ").slice(0, 2).join(": ")),
      [
        `${where("  clips:")}: providers.clips.credentials`,
        `${where("max_ouput")}: models[0].max_ouput`,
        `${where("    pricing:")}: models[0].pricing.prompt_per_1m_usd`,
        `${where("seconds: {allowed")}: models[2].seconds.default`
      ]
    )
  })

  it.effect("without a price is refused", function* () {
    const text = small.replace(/ {4}variants:\n.*\n.*\n/, "")
    assert.notStrictEqual(text, small)
    const [line] = yield* problemsOf(text)
    assert.strictEqual(
      line,
      `catalog.yaml:${lineOf(text, "id: draw")}: models[1]: the price is missing: give pricing or variants`
    )
  })

  it.effect("is refused without repeating a secret given as a variable's name", function* () {
    const lines = yield* problemsOf(edited("credential: FIRST_KEY", "credential: sk-abc123def456"))
    assert.deepStrictEqual(lines, [
      "catalog.yaml:6: providers.first.credential: must be the name of an environment variable, in capitals"
    ])
  })

  it.effect("that is not YAML is refused with the line of the error", function* () {
    const [broken] = yield* problemsOf("providers:\n  a: {adapter: sandbox\nmodels: []\n")
    assert.match(broken ?? "", /^catalog\.yaml:\d+: /)
    const [twice] = yield* problemsOf("models: []\nproviders: {}\nmodels: []\n")
    assert.match(twice ?? "", /^catalog\.yaml:3: Map keys must be unique/)
    const [bomb] = yield* problemsOf(
      `a: &a [x,x,x,x,x,x,x,x,x,x]\n${"bcdefgh".replaceAll(/./g, (name) => {
        const before = String.fromCharCode(name.charCodeAt(0) - 1)
        return `${name}: &${name} [${Array.from({ length: 10 }, () => `*${before}`).join()}]\n`
      })}`
    )
    assert.match(bomb ?? "", /^catalog\.yaml:1: /)
    const mapping = "catalog.yaml:1: must be a mapping of providers, models and families"
    assert.deepStrictEqual(yield* problemsOf(""), [mapping])
    assert.deepStrictEqual(yield* problemsOf("- a\n- b\n"), [mapping])
  })

  it.effect("that cannot be read is refused as invalid", () =>
    Effect.gen(function* () {
      const { message } = yield* Effect.flip(readCatalogFile("/nowhere/catalog.yaml"))
      assert.strictEqual(message, "/nowhere/catalog.yaml:1: there is no such file; CATALOG_FILE names the catalog")
      const directory = yield* Effect.flip(readCatalogFile("/"))
      assert.match(directory.message, /^\/:1: cannot be read as CATALOG_FILE: /)
    }).pipe(Effect.provide(NodeContext.layer))
  )
})
