import path from "node:path"
import { NodeContext } from "@effect/platform-node"
import { Effect } from "effect"
import { readCatalogFile } from "../../../src/services/catalog/Catalog.ts"
import { edited, lineOf, problemsOf, small } from "../../harness/fixtures/Catalogs.ts"
import { assert, describe, it } from "../../harness/It.ts"
import { directoryWith } from "../../harness/temporary.ts"

describe("an invalid catalog", () => {
  /** Values of the prompt's price in the place of 1.5. */
  const prices = ["1.5e0", "0.0000000001", "-1", "2000000", "cheap"].map(
    (price) =>
      ["prompt_per_1m_usd: 1.5\n", `prompt_per_1m_usd: ${price}\n`, "models[0].pricing.prompt_per_1m_usd"] as const
  )
  /** What is replaced by what, and the key that is named. */
  const others = [
    ["prompt_per_1m_usd: 1.5\n      ", "", "models[0].pricing.prompt_per_1m_usd"],
    ["max_output: 64000", "max_ouput: 64000", "models[0].max_ouput"],
    ["    max_output: 64000\n", "", "models[0]: max_output"],
    ["max_output: 64000", "max_output: 64000.5", "models[0].max_output"],
    ["max_output: 64000", "max_output: 2000000", "models[0].max_output"],
    ["family: A", "family: Z", "models[0].family"],
    ["surface: chat", "surface: talk", "models[0].surface"],
    ["[low, medium, high]", "[low, huge]", "models[0].reasoning"],
    ["[tools, vision, web_search]", "[tools, vison]", "models[0].capabilities[1]"],
    ["capabilities: [tools], reasoning: none", "capabilities: [response_format]", "models[0].routes[2].capabilities"],
    ["created: 2026-07-21", "created: 2026-02-30", "models[0].created"],
    ["weight: 3", "weight: 0", "models[0].routes[1].weight"],
    ["provider: second, model: v/talk", "provider: secnd, model: v/talk", "models[0].routes[2].provider"],
    ["provider: second, model: v/talk", "provider: clips, model: v/talk", "models[0].routes[2].provider"],
    ["- id: film", "- id: draw", "models[2].id"],
    ["- id: film", "- id: two words", "models[2].id"],
    ["default: 8}", "default: 7}", "models[2].seconds.default"],
    ["allowed: [8, 4, 6]", "allowed: [8, 4, 4]", "models[2].seconds.allowed"],
    ["pricing: {per_second_usd: 0.1}", "pricing: {}", "models[2].pricing"],
    ["pricing: {per_second_usd: 0.1}\n    ", "", "models[2].pricing"],
    ["reference_image: optional", "reference_image: none", "models[2].routes[0].image_model"],
    ['seconds_as: "8s"', 'seconds_as: "8min"', "models[2].routes[0].seconds_as"],
    ['seconds_as: "8s"', "seconds: [5]", "models[2].routes[0].seconds"],
    ["{resolution: 4K, price_usd", "{resolution: 1K, price_usd", "models[1].variants"],
    ["    edit: true\n", "", "models[1].routes[0]"],
    ["edit_model: v/draw/edit}", "edit_model: v/draw/edit, resolutions: [1K]}", "models[1].routes"],
    ["routes: [{provider: clips, model: v/draw, edit_model: v/draw/edit}]", "routes: []", "models[1].routes[0]"],
    ["adapter: fal-queue", "adapter: fal", "providers.clips.adapter"],
    ["base_url: https://clips.test, ", "", "providers.clips: base_url"],
    ["https://clips.test", "ftp://clips.test", "providers.clips.base_url"],
    ["https://clips.test", "https://user:pw@clips.test", "providers.clips.base_url"],
    ["  clips: {adapter", "  sandbox: {adapter", "providers.sandbox"],
    ["{x-team: blue}", "5", "providers.first.headers"],
    ["{retries: 5}", "5", "models[0].routes[0].options"],
    ["{max_tokens_field: max_completion_tokens, retries: 2}", "5", "providers.first.options"],
    ["{retries: 5}", "five", "models[0].routes[0].options"],
    ["{max_tokens_field: max_completion_tokens, retries: 2}", "five", "providers.first.options"],
    ["{retries: 5}", "[five]", "models[0].routes[0].options"],
    ["{max_tokens_field: max_completion_tokens, retries: 2}", "[five]", "providers.first.options"],
    ["x-team: blue", "x-team: 7", "providers.first.headers.x-team"],
    ["sampling: true", "sampling: yes", "families.A.sampling"],
    ["families:", "familys:", "familys"]
  ] as const

  for (const [from, to, key] of [...prices, ...others]) {
    it.effect(`is refused at ${key} for ${JSON.stringify(to)}`, function* () {
      const lines = yield* problemsOf(edited(from, to))
      assert.isTrue(
        lines.some((line) => line.includes(`: ${key}`)),
        lines.join("\n")
      )
    })
  }

  it.effect("is refused for any two mistakes at once", function* () {
    // These two rename a key that other mistakes change.
    const all = [...prices.slice(4), ...others].filter(([from]) => !["families:", "  clips: {adapter"].includes(from))
    const masked: Array<string> = []
    for (const [index, [from, to, key]] of all.entries()) {
      for (const [otherFrom, otherTo, otherKey] of all.slice(index + 1)) {
        const once = edited(from, to)
        const twice = once.replace(otherFrom, otherTo)
        if (twice === once || !twice.includes(to) || key === otherKey) continue
        const lines = yield* problemsOf(twice)
        for (const named of [key, otherKey]) {
          if (!lines.some((line) => line.includes(`: ${named}`))) masked.push(`${named}: ${to} and ${otherTo}`)
        }
      }
    }
    // In these pairs one mistake makes the other valid.
    assert.deepStrictEqual(masked, [
      "models[0]: max_output:  and family: Z",
      "models[0].routes[2].provider: provider: clips, model: v/talk and adapter: fal",
      "models[1].routes: {resolution: 1K, price_usd and edit_model: v/draw/edit, resolutions: [1K]}"
    ])
  })

  it.effect("without any family says only where to add one", function* () {
    const lines = yield* problemsOf(small.replace(/^families:\n(?: .*\n)+/m, ""))
    assert.isTrue(
      lines.some((line) => line.endsWith(": unknown family A: add it to families")),
      lines.join("\n")
    )
  })

  it.effect("suggests the right name of a misspelt key, and checks the rest", function* () {
    const text = edited("surface: chat", "surfce: chat")
      .replace("max_output: 64000", "max_ouput: much")
      .replace("weight: 3", "weigth: 3")
      .replace("provider: second, model: v/talk", "provider: secnd, model: v/talk")
      .replace("default: 8}", "default: 8, defalt: 4}")
    const lines = yield* problemsOf(text)
    assert.deepStrictEqual(
      lines.map((line) => line.replace(/ Known: .*$/, "")),
      [
        ["surfce", "models[0].surfce: unknown key; did you mean surface?"],
        ["max_ouput", "models[0].max_ouput: unknown key; did you mean max_output?"],
        ["weigth", "models[0].routes[1].weigth: unknown key; did you mean weight?"],
        [
          "secnd, model",
          "models[0].routes[2].provider: unknown provider secnd; known: first, second, clips; use one of them, or add it to providers"
        ],
        ["defalt", "models[2].seconds.defalt: unknown key; did you mean default?"]
      ].map(([part = "", message]) => `catalog.yaml:${lineOf(text, part)}: ${message}`)
    )
    const [wrong] = yield* problemsOf(edited("surface: chat", "surface: chatt"))
    assert.match(wrong ?? "", /: models\[0\]\.surface: must be one of chat, image, video$/)
    for (const kind of ["chat", "image", "video"]) {
      const without = small.replace(`    surface: ${kind}\n`, "")
      const problems = yield* problemsOf(without)
      assert.lengthOf(problems, 1)
      assert.match(problems[0] ?? "", /: models\[\d\]\.surface: is missing$/)
    }
  })

  it.effect("is refused with a hint if a price is per token", function* () {
    const hint = ": it looks like a price per token; give the price per million tokens"
    for (const price of ["1.5e-06", "0.0000000028"]) {
      const [line] = yield* problemsOf(edited("prompt_per_1m_usd: 1.5", `prompt_per_1m_usd: ${price}`))
      assert.isTrue(line?.endsWith(hint), line)
    }
    const [line] = yield* problemsOf(edited("prompt_per_1m_usd: 1.5", "prompt_per_1m_usd: 1.5e0"))
    assert.isFalse(line?.endsWith(hint))
  })

  it.effect("is refused where a second document begins", function* () {
    const lines = yield* problemsOf(edited("families:", "---\nfamilies:"))
    assert.include(lines[0], "---")
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
    assert.include(line, `catalog.yaml:${lineOf(text, "id: draw")}: models[1]: `)
  })

  it.effect("is refused without repeating a secret given as a variable's name", function* () {
    const lines = yield* problemsOf(edited("credential: FIRST_KEY", "credential: sk-abc123def456"))
    assert.lengthOf(lines, 1)
    assert.include(lines[0], "catalog.yaml:6: providers.first.credential: ")
    assert.notInclude(lines[0], "sk-abc123def456")
  })

  it.effect("that is not YAML is refused with the line of the error", function* () {
    const [broken] = yield* problemsOf("providers:\n  a: {adapter: sandbox\nmodels: []\n")
    assert.match(broken ?? "", /^catalog\.yaml:\d+: /)
    const [twice] = yield* problemsOf("models: []\nproviders: {}\nmodels: []\n")
    assert.match(twice ?? "", /^catalog\.yaml:3: /)
    const [bomb] = yield* problemsOf(
      `a: &a [x,x,x,x,x,x,x,x,x,x]\n${"bcdefgh".replaceAll(/./g, (name) => {
        const before = String.fromCharCode(name.charCodeAt(0) - 1)
        return `${name}: &${name} [${Array.from({ length: 10 }, () => `*${before}`).join()}]\n`
      })}`
    )
    assert.match(bomb ?? "", /^catalog\.yaml:1: /)
    for (const text of ["", "- a\n- b\n"]) {
      const lines = yield* problemsOf(text)
      assert.lengthOf(lines, 1)
      assert.match(lines[0] ?? "", /^catalog\.yaml:1: /)
    }
  })

  it.effect("that cannot be read is refused as invalid", () =>
    Effect.gen(function* () {
      const { message } = yield* Effect.flip(readCatalogFile("/nowhere/catalog.yaml"))
      assert.match(message, /^\/nowhere\/catalog\.yaml:1: .*CATALOG_FILE/)
      const directory = yield* Effect.flip(readCatalogFile("/"))
      assert.match(directory.message, /^\/:1: .*CATALOG_FILE/)
    }).pipe(Effect.provide(NodeContext.layer))
  )

  it.scoped("is read in the encodings of Windows, and refused with a reason in others", () =>
    Effect.gen(function* () {
      const utf16 = Buffer.from("\ufeffmodels: [] # ü\n", "utf16le")
      const directory = yield* directoryWith({
        "utf8.yaml": "\ufeffmodels: [] # ü\n",
        "utf16.yaml": utf16,
        "unmarked.yaml": utf16.subarray(2)
      })
      const read = (name: string) => readCatalogFile(path.join(directory, name))
      for (const name of ["utf8.yaml", "utf16.yaml"]) assert.strictEqual((yield* read(name)).text, "models: [] # ü\n")
      const { message } = yield* Effect.flip(read("unmarked.yaml"))
      assert.strictEqual(
        message,
        `${path.join(directory, "unmarked.yaml")}:1: cannot be read: it contains NUL characters: save it as UTF-8`
      )
    }).pipe(Effect.provide(NodeContext.layer))
  )
})
