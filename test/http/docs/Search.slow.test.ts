import { Effect } from "effect"
import { pages } from "../../../src/http/docs/Site.ts"
import { findBarriers } from "../../console/ConsolePage.ts"
import { isSkipped, openPage } from "../../harness/client/Browser.ts"
import { call } from "../../harness/client/HttpCalls.ts"
import * as Served from "../../harness/gateway/ServedGateway.ts"
import { assert, withLayer } from "../../harness/It.ts"

const opened = Effect.fnUntraced(function* (path: string, options: Parameters<typeof openPage>[1] = {}) {
  const { url } = yield* Served.ServedGateway
  const { page, problems } = yield* openPage([url], options)
  yield* Effect.promise(() => page.goto(`${url}${path}`))
  return { page, problems, url }
})

withLayer(Served.layer(Effect.succeed({ env: { SANDBOX: "true" } })))("the search of the docs", (it) => {
  it.effect("covers every page with addresses that exist, and stays small", function* () {
    const { headers, text } = yield* call("/docs/search.json")
    assert.strictEqual(headers.get("content-type"), "application/json; charset=utf-8")
    assert.isBelow(text.length, 200_000)
    const entries: ReadonlyArray<{ page: string; url: string }> = JSON.parse(text)
    assert.sameMembers(
      [...new Set(entries.map(({ page }) => page))],
      pages.map(({ title }) => title)
    )
    const texts = new Map<string, string>()
    for (const { url } of entries) {
      const [path = "", anchor] = url.split("#")
      const page = texts.get(path) ?? (yield* call(path)).text
      texts.set(path, page)
      if (anchor !== undefined) assert.include(page, ` id="${anchor}"`, url)
    }
    const again = yield* call("/docs/search.json", { headers: { "if-none-match": headers.get("etag") ?? "" } })
    assert.strictEqual(again.status, 304)
  })

  it.scoped.skipIf(isSkipped)("opens with a slash and leads to a section by the keyboard", function* () {
    const { page, problems, url } = yield* opened("/docs")
    yield* Effect.promise(async () => {
      await page.keyboard.press("/")
      await page.keyboard.type("idempotency-key")
      const results = page.getByRole("search").getByRole("listitem")
      await results.first().waitFor()
      assert.match(await page.getByRole("search").getByRole("status").innerText(), /^(?:The best 20 of )?\d+ results$/)
      const [first = ""] = await results.allInnerTexts()
      assert.match(first, /^Idempotency-Key\s*Errors\n/)
      assert.deepStrictEqual(await findBarriers(page), [])
      await page.keyboard.press("ArrowDown")
      await page.keyboard.press("Enter")
      await page.waitForURL(`${url}/docs/errors#idempotency-key`)
    })
    assert.deepStrictEqual(problems, [])
  })

  it.scoped.skipIf(isSkipped)("finds operations, fields, models and pages", function* () {
    const { page, problems } = yield* opened("/docs/limits")
    yield* Effect.promise(async () => {
      for (const [query, address] of [
        ["create a video", "/docs/reference#createVideo"],
        ["structured output", "/docs/structured-output"],
        ["gpt-5.4-nano", "/docs/models#gpt-54-nano"],
        ["supportsStructuredOutputs", "/docs/structured-output#ai-sdk"]
      ] as const) {
        await page.getByRole("searchbox").fill(query)
        await page.locator(`.results a[href="${address}"]`).waitFor()
      }
    })
    assert.deepStrictEqual(problems, [])
  })

  it.scoped.skipIf(isSkipped)("reports that nothing is found, and closes", function* () {
    const { page, problems } = yield* opened("/docs/money")
    yield* Effect.promise(async () => {
      await page.getByRole("searchbox").fill("xyzzy <b>")
      const status = page.getByRole("search").getByRole("status")
      await status.waitFor()
      assert.strictEqual(await status.innerText(), "No results for “xyzzy <b>”. Try fewer or shorter words.")
      await page.keyboard.press("Escape")
      await status.waitFor({ state: "hidden" })
      assert.strictEqual(await page.getByRole("searchbox").inputValue(), "")
    })
    assert.deepStrictEqual(problems, [])
  })

  it.scoped.skipIf(isSkipped)("is not shown without scripts", function* () {
    const { page } = yield* opened("/docs", { javaScriptEnabled: false })
    yield* Effect.promise(async () => assert.isFalse(await page.locator("#search").isVisible()))
  })
})

withLayer(Served.layer(Effect.succeed({ env: { SANDBOX: "true" } })))("the table of models", (it) => {
  it.scoped.skipIf(isSkipped)("filters and sorts each kind", function* () {
    const { page, problems } = yield* opened("/docs/models")
    yield* Effect.promise(async () => {
      const rows = page.locator(".compare tbody tr[data-words]:visible")
      const ids = () => rows.locator("th").allInnerTexts()
      const status = page.locator(".filter p")
      assert.strictEqual(await status.innerText(), "45 of 45 models")
      await page.getByLabel("Filter").fill("gpt web search")
      assert.strictEqual(await status.innerText(), "6 of 45 models")
      assert.isTrue((await ids()).every((id) => id.startsWith("gpt-5")))
      await page.getByRole("button", { name: "Input" }).click()
      assert.strictEqual((await ids())[0], "gpt-5.4-nano")
      assert.strictEqual(await page.locator("[aria-sort]").getAttribute("aria-sort"), "ascending")
      await page.getByRole("button", { name: "Input" }).click()
      assert.strictEqual((await ids()).at(-1), "gpt-5.4-nano")
      await page.getByLabel("Filter").fill("no such model")
      assert.strictEqual(await status.innerText(), "No model matches.")
      await page.getByLabel("Filter").fill("")
      const kinds = await rows.locator("td:nth-child(2)").allInnerTexts()
      assert.deepStrictEqual(kinds, kinds.toSorted())
    })
    assert.deepStrictEqual(problems, [])
  })
})

withLayer(Served.layer(Effect.succeed({ env: { SANDBOX: "true" } })))("the examples of the guides", (it) => {
  it.scoped.skipIf(isSkipped)("have copy buttons that cover no code", function* () {
    const { page } = yield* opened("/docs/tools", { viewport: { width: 360, height: 800 } })
    yield* Effect.promise(async () => {
      for (const block of await page.locator(".block:visible").all()) {
        const button = await block.getByRole("button", { name: "Copy" }).boundingBox()
        const code = await block.locator("pre").boundingBox()
        assert.isAtMost((button?.y ?? 0) + (button?.height ?? 0), code?.y ?? 0)
      }
    })
  })

  it.scoped.skipIf(isSkipped)("change with the chosen language, if they exist in it", function* () {
    const { page } = yield* opened("/docs/images")
    yield* Effect.promise(async () => {
      const labels = () => page.locator(".block:visible .bar").allInnerTexts()
      const named = (texts: ReadonlyArray<string>) => texts.map((text) => text.replace(/\s*Copy$/, ""))
      assert.deepStrictEqual(named(await labels()), ["curl", "curl", "Python", "JavaScript", "JavaScript"])
      await page.getByLabel("Python", { exact: true }).check()
      assert.deepStrictEqual(named(await labels()), ["Python", "curl", "Python", "JavaScript"])
    })
  })
})
