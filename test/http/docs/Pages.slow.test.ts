import { Effect, Struct } from "effect"
import type { Page } from "playwright-core"
import { pages } from "../../../src/http/docs/Site.ts"
import { openAccount } from "../../harness/client/Account.ts"
import { isSkipped, openPage } from "../../harness/client/Browser.ts"
import * as Served from "../../harness/gateway/ServedGateway.ts"
import { assert, withLayer } from "../../harness/It.ts"
import { document as known } from "../openapi/Published.ts"

const gateway = Served.layer(Effect.succeed({ env: { SANDBOX: "true", CORS_ORIGINS: "*" } }))

const operations = Object.entries(known.paths).flatMap(([path, item]) =>
  Object.entries(item).map(([method, { operationId, summary = "" }]) => ({
    endpoint: `${method.toUpperCase()} /v1${path}`,
    operationId,
    summary
  }))
)

const colors = ["light", "dark"] as const
const widths = [360, 768, 1440]

const opened = Effect.fnUntraced(function* (path: string, options: Parameters<typeof openPage>[1] = {}) {
  const { url } = yield* Served.ServedGateway
  const { page, problems } = yield* openPage([url], options)
  yield* Effect.promise(() => page.goto(`${url}${path}`))
  return { page, problems, url }
})

const overflow = (page: Page) =>
  page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")

const focused = (page: Page) => page.evaluate("document.activeElement.textContent")

withLayer(gateway)("in a browser", (it) => {
  it.scoped.skipIf(isSkipped)("the first page leads to the reference; both load nothing from elsewhere", function* () {
    const { page, problems, url } = yield* opened("/")
    yield* Effect.promise(async () => {
      assert.strictEqual(await page.locator("h1").textContent(), "Generation Gateway API 1.0.0")
      await page.getByRole("link", { name: "API reference" }).click()
      await page.waitForURL(`${url}/docs/reference`)
      for (const { endpoint, operationId, summary } of operations) {
        const section = page.locator(`section[aria-labelledby="${operationId}"]`)
        assert.strictEqual(await section.locator("h3").textContent(), summary)
        assert.strictEqual(await section.locator(".endpoint").textContent(), endpoint)
      }
      assert.lengthOf(await page.locator("section.operation").all(), operations.length)
    })
    assert.deepStrictEqual(problems, [])
  })

  it.scoped.skipIf(isSkipped)(
    "every operation shows its examples in the chosen language, also next time",
    function* () {
      const { page, problems } = yield* opened("/docs/reference")
      yield* Effect.promise(async () => {
        const shown = async () => {
          for (const { operationId } of operations) {
            const section = page.locator(`section[aria-labelledby="${operationId}"]`)
            const [first = ""] = await section.locator("pre.sample:visible").allInnerTexts()
            assert.match(first, starts, operationId)
          }
        }
        let starts = /^curl /
        await shown()
        starts = /^import os\n/
        await page.getByLabel("Python", { exact: true }).check()
        await shown()
        starts = /^(?:import .*\n\n)*const /
        await page.getByLabel("JavaScript", { exact: true }).check()
        await shown()
        await page.reload()
        assert.isTrue(await page.getByLabel("JavaScript", { exact: true }).isChecked())
        await shown()
      })
      assert.deepStrictEqual(problems, [])
    }
  )

  it.scoped.skipIf(isSkipped)("an example can be copied", function* () {
    const { page } = yield* opened("/docs/reference", { permissions: ["clipboard-read", "clipboard-write"] })
    yield* Effect.promise(async () => {
      const section = page.locator('section[aria-labelledby="getCredits"]')
      const text = await section.locator("pre.curl").innerText()
      await section.getByRole("button", { name: "Copy" }).first().click()
      await section.getByRole("button", { name: "Copied" }).waitFor()
      assert.strictEqual(await page.evaluate("navigator.clipboard.readText()"), text)
    })
  })

  it.scoped.skipIf(isSkipped)("the keyboard alone reaches every operation", function* () {
    const { page, url } = yield* opened("/docs/reference")
    yield* Effect.promise(async () => {
      await page.keyboard.press("Tab")
      assert.strictEqual(await focused(page), "Skip to the content")
      const reached = new Set<unknown>()
      for (let steps = 0; steps < operations.length + pages.length + 20; steps++) {
        await page.keyboard.press("Tab")
        reached.add(await focused(page))
      }
      assert.includeMembers([...reached], operations.map(Struct.get("summary")))
      await page
        .getByRole("navigation", { name: "Documentation" })
        .getByRole("link", { name: "Create a video" })
        .focus()
      await page.keyboard.press("Enter")
      await page.waitForURL(`${url}/docs/reference#createVideo`)
      await page.keyboard.press("Tab")
      assert.strictEqual(await focused(page), "Create a video")
    })
  })

  it.scoped.skipIf(isSkipped)("the pages fit every width in both colors, and have no script to need", function* () {
    for (const colorScheme of colors) {
      for (const width of widths) {
        const { page } = yield* opened("/docs/reference", {
          colorScheme,
          viewport: { height: 800, width },
          javaScriptEnabled: width !== 768
        })
        yield* Effect.promise(async () => {
          if (width !== 768) assert.strictEqual(await overflow(page), 0)
          const back = await page.evaluate("getComputedStyle(document.body).backgroundColor")
          assert.strictEqual(back, colorScheme === "light" ? "rgb(255, 255, 255)" : "rgb(18, 22, 28)")
          await page.getByLabel("Python", { exact: true }).check()
          assert.isTrue(await page.locator('section[aria-labelledby="listModels"] pre.python').isVisible())
        })
      }
    }
  })

  it.scoped.skipIf(isSkipped)("a page of another origin can call, stream and read our headers", function* () {
    const { url } = yield* Served.ServedGateway
    const { secret } = yield* openAccount({})
    const elsewhere = url.replace("127.0.0.1", "localhost")
    const { page } = yield* openPage([url, elsewhere])
    yield* Effect.promise(async () => {
      await page.goto(`${elsewhere}/healthz`)
      const answer = await page.evaluate(
        async ({ body, secret, to }) => {
          const response = await fetch(to, {
            method: "POST",
            headers: {
              authorization: `Bearer ${secret}`,
              "content-type": "application/json",
              "x-request-id": "of-a-page",
              "x-stainless-lang": "js"
            },
            body
          })
          const { headers } = response
          return [headers.get("x-request-id"), headers.get("x-ratelimit-limit"), await response.text()]
        },
        {
          to: `${url}/v1/chat/completions`,
          secret,
          body: JSON.stringify({
            model: "gpt-5.2",
            stream: true,
            messages: [{ role: "user", content: "hi" }]
          })
        }
      )
      assert.deepStrictEqual(answer.slice(0, 2), ["of-a-page", "600"])
      assert.match(answer[2] ?? "", /data: \[DONE\]\n\n$/)
    })
  })
})
