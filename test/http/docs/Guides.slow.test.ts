import { Effect } from "effect"
import type { ChatModel, Model } from "../../../src/domain/Model.ts"
import { NanoUsd } from "../../../src/domain/Money.ts"
import { docsPages } from "../../../src/http/docs/guides/Guides.ts"
import { type PageName, siteAt, pages as sitePages } from "../../../src/http/docs/Site.ts"
import { openApiDocument } from "../../../src/http/openapi/OpenApi.ts"
import { listModel } from "../../../src/services/catalog/ModelEntry.ts"
import { findMisfits } from "../../console/ConsolePage.ts"
import { chatModel } from "../../domain/PricedChats.ts"
import { isSkipped, openPage } from "../../harness/client/Browser.ts"
import { call } from "../../harness/client/HttpCalls.ts"
import { builtIn } from "../../harness/fixtures/Catalogs.ts"
import * as Served from "../../harness/gateway/ServedGateway.ts"
import { assert, describe, it, withLayer } from "../../harness/It.ts"
import { modelNamed } from "../openapi/NamedModels.ts"

const paths = sitePages.map(({ name }) => siteAt("https://api.test").page(name))
const surfaces = ["chat", "image", "video"] as const

const rendered = (models: ReadonlyArray<Model>, publicUrl = "https://api.test") => {
  const published = openApiDocument(models, listModel, `${publicUrl}/v1`)
  return docsPages({ models, listModel, published, publicUrl })
}

const textOf = (models: ReadonlyArray<Model>, name: PageName): string =>
  rendered(models)
    .get(name === "quickstart" ? "" : name)
    ?.body.toString() ?? assert.fail(`there is no page ${name}`)

const unescape = (text: string): string => text.replace(/&#(\d+);/g, (_, code) => String.fromCharCode(Number(code)))
const wordsOf = (page: string): string => unescape(page.replaceAll(/<[^>]+>/g, " ")).replaceAll(/\s+/g, " ")

const builtInIds = Array.from(builtIn.matchAll(/^ {2}- id: (\S+)$/gm), ([, id = ""]) => id)
const named = surfaces.map((surface) => modelNamed({ id: `own-${surface}`, surface }))

describe("the guides", () => {
  it("name no model, price or address but those of this gateway", () => {
    assert.isAbove(builtInIds.length, 40)
    for (const { name } of sitePages) {
      const text = textOf(named, name)
      assert.notMatch(text, /gateway\.example|127\.0\.0\.1/, name)
      const words = new Set(text.match(/[\w.-]*\w/g))
      assert.deepStrictEqual(
        builtInIds.filter((id) => words.has(id)),
        [],
        name
      )
    }
    assert.include(wordsOf(textOf(named, "agents")), 'base_url = "https://api.test/v1"')
    assert.include(wordsOf(textOf(named, "agents")), 'model = "own-chat"')
  })

  it("tell agents the limits of the models that they name", () => {
    const small = chatModel({ id: "own-small", contextLength: 32_000, maxOutput: 4_000 })
    const text = wordsOf(textOf([small], "agents"))
    assert.include(text, '"own-small": { "name": "own-small", "limit": { "context": 32000, "output": 4000 } }')
  })

  it("show a video's event with the length and the price of a model that is sold", () => {
    const text = wordsOf(textOf(named, "webhooks"))
    assert.include(text, '"model": "own-video", "status": "completed"')
    assert.include(text, '"seconds": 5, "charge_usd": 0.2')
  })

  it("show the prices of each model: of caches, long prompts and searches, and the next ones", () => {
    const base: ChatModel = chatModel({ id: "own-chat" })
    const at = Date.parse("2027-01-01T00:00:00Z")
    const later = { ...base, pricing: { ...base.pricing, prompt: NanoUsd(7_770_000_000n) } }
    const priced: ChatModel = {
      ...base,
      pricing: {
        ...base.pricing,
        prompt: NanoUsd(1_250_000_000n),
        cachedPrompt: NanoUsd(130_000_000n),
        cacheWriteHour: NanoUsd(2_600_000_000n),
        longContext: { above: 200_000, prompt: NanoUsd(2_510_000_000n), completion: NanoUsd(9_990_000_000n) },
        webSearch: NanoUsd(14_000_000_000n)
      },
      next: { at, model: later }
    }
    const text = wordsOf(textOf([priced, ...named.slice(1)], "models"))
    for (const shown of ["$1.25", "$0.13", "$2.6", "above 200,000 prompt tokens", "$2.51", "$9.99", "$14"]) {
      assert.include(text, shown)
    }
    assert.match(text, /From 2027-01-01T00:00:00Z .*\$7\.77/)
    assert.include(text, "Image in 1K, 1024x1024, 1536x1024 $0.04")
    assert.include(text, "5, 10; default 5")
  })

  it("have no table heading without a text", () => {
    for (const { name } of sitePages) assert.notMatch(textOf(named, name), /<th[^>]*>\s*<\/th>/, name)
  })

  it("show what a catalog names as text", () => {
    const hostile = `<script>alert("1")</script>'&\``
    for (const [name, { body }] of rendered(surfaces.map((surface) => modelNamed({ id: hostile, surface })))) {
      if (name !== "search.json") assert.lengthOf(String(body).match(/<script>/g) ?? [], 1)
    }
  })

  it("are there without any model", () => {
    assert.include(wordsOf(textOf([], "agents")), 'model = "<model>"')
    assert.notInclude(textOf([], "models"), "Chat models")
  })
})

withLayer(Served.layer(Effect.succeed({ env: { SANDBOX: "true" } })))("the pages of the docs", (it) => {
  it.effect("link only to what is there, and need no key", function* () {
    const pages = new Map<string, string>()
    for (const path of paths) {
      const { status, text } = yield* call(path)
      assert.strictEqual(status, 200)
      pages.set(path, text)
    }
    for (const [from, text] of pages) {
      const targets = Array.from(text.matchAll(/<a [^>]*href="([^"]+)"/g), ([, target = ""]) => target)
      for (const target of targets.filter((one) => !/^https?:/.test(one))) {
        const [path = "", anchor] = target.split("#")
        const found = pages.get(path === "" ? from : path)
        assert.isDefined(found, `${target} of ${from}`)
        if (anchor !== undefined) assert.include(found, ` id="${anchor}"`, `${target} of ${from}`)
      }
      for (const path of paths) assert.include(targets, path)
    }
  })

  it.effect("are not sent again to who has them, and stay unknown under other names", function* () {
    const { headers } = yield* call("/docs/errors")
    assert.match(headers.get("content-security-policy") ?? "", /^default-src 'none'; style-src 'sha256-/)
    const again = yield* call("/docs/errors", { headers: { "if-none-match": headers.get("etag") ?? "" } })
    assert.strictEqual(again.status, 304)
    assert.strictEqual((yield* call("/docs/constructor")).status, 404)
  })

  it.effect("tell of every error of the published contract", function* () {
    const text = wordsOf((yield* call("/docs/errors")).text)
    const { paths: published } = JSON.parse((yield* call("/v1/openapi.json")).text)
    const codes = JSON.stringify(published).matchAll(/"code":"(\w+)"/g)
    const named = new Set(Array.from(codes, ([, code = ""]) => code))
    assert.isAbove(named.size, 15)
    for (const code of named) assert.include(text, code)
  })

  for (const path of paths) {
    it.scoped.skipIf(isSkipped)(`fit every width in both colors, and bar nobody: ${path}`, function* () {
      const { url } = yield* Served.ServedGateway
      const { page, problems } = yield* openPage([url])
      yield* Effect.promise(async () => {
        await page.goto(`${url}${path}`)
        // A list of all models takes seconds for each look.
        assert.deepStrictEqual(
          await findMisfits(page, [
            ["light", 360],
            ["dark", 1440]
          ]),
          []
        )
      })
      assert.deepStrictEqual(problems, [])
    })
  }

  it.scoped.skipIf(isSkipped)("are reached from each other by the keyboard", function* () {
    const { url } = yield* Served.ServedGateway
    const { page } = yield* openPage([url])
    yield* Effect.promise(async () => {
      await page.goto(`${url}/docs/money`)
      await page.keyboard.press("Tab")
      assert.strictEqual(await page.evaluate("document.activeElement.textContent"), "Skip to the content")
      await page.getByRole("navigation", { name: "Documentation" }).getByRole("link", { name: "Errors" }).focus()
      await page.keyboard.press("Enter")
      await page.waitForURL(`${url}/docs/errors`)
      assert.strictEqual(await page.locator("[aria-current=page]").textContent(), "Errors")
    })
  })
})
