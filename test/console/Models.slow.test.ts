import { Effect } from "effect"
import { Organizations } from "../../src/services/admin/Organizations.ts"
import { isSkipped } from "../harness/client/Browser.ts"
import * as Served from "../harness/gateway/ServedGateway.ts"
import { assert, withLayer } from "../harness/It.ts"
import { findBarriers, findMisfits, inBothThemes, openConsole } from "./ConsolePage.ts"
import { addFilter, auditOf, button, heading, tabTo, without } from "./ConsoleParts.ts"

const gateway = Served.layer(Effect.succeed({ env: { SANDBOX: "true" } }))

withLayer(gateway)("the models of the console", (it) => {
  it.scoped.skipIf(isSkipped)("are found by text, endpoint type and state", function* () {
    const { page, problems, url } = yield* openConsole({ hash: "#/routes?search=gpt-5.2" })
    yield* Effect.promise(async () => {
      await heading(page, "Models").waitFor()
      const rows = page.getByRole("region", { name: "Models", exact: true }).locator("tbody tr")
      const row = rows.filter({ has: page.getByRole("link", { name: "gpt-5.2", exact: true }) })
      await row.waitFor()
      assert.match(await row.innerText(), /chat[^]+\$[\d.]+ \/ \$[\d.]+ per 1M tokens[^]+%[^]+sandbox/)
      await page.evaluate("location.hash = '#/models?surface=video'")
      await page.getByRole("link", { name: "veo-3.1-fast-generate-001" }).waitFor()
      assert.strictEqual(await row.count(), 0)
      await (await addFilter(page, "State")).selectOption("unavailable")
      await page.getByText("No models match.").waitFor()
      await page.waitForURL(`${url}/console#/models?surface=video&state=unavailable`)
    })
    assert.deepStrictEqual(without(problems), [])
  })

  it.scoped.skipIf(isSkipped)("are tested with one request by the keyboard alone", function* () {
    const { operator, page, problems } = yield* openConsole({ role: "write", hash: "#/models/gpt-5.2" })
    yield* Effect.promise(async () => {
      await button(page, "Test gpt-5.2").waitFor()
      await tabTo(page, "Test gpt-5.2")
      await page.keyboard.press("Enter")
      await page.getByRole("dialog", { name: "Test gpt-5.2?" }).waitFor()
      assert.deepStrictEqual(await findBarriers(page), [])
      await tabTo(page, "Test")
      await page.keyboard.press("Enter")
      const result = page.getByRole("region", { name: "Test", exact: true })
      await result.getByText("succeeded").waitFor()
      assert.match(
        await result.innerText(),
        /Response\s+\S[^]+Latency\s+[\d.]+ m?s[^]+Cost\s+\$0\.00[^]+gpt-5\.2@sandbox/
      )
      assert.deepStrictEqual(await findBarriers(page), [])
      await page.evaluate("location.hash = '#/models/veo-3.1-fast-generate-001'")
      await page.getByText("Video models cannot be tested here.").waitFor()
      assert.strictEqual(await page.getByRole("button", { name: /^Test/ }).count(), 0)
    })
    assert.deepStrictEqual(yield* auditOf(operator.name), ["console models.test gpt-5.2"])
    assert.deepStrictEqual(without(problems), [])
  })

  it.scoped.skipIf(isSkipped)("say in plain words how healthy their routes are", function* () {
    const route = {
      model: "m",
      provider: "p",
      open_until: null,
      open_for_organizations: 0,
      last_error: null,
      last_error_at: null,
      latency_ms: null,
      requests: 1,
      failures: 0,
      instances: 1,
      in_catalog: true,
      disabled_at: null,
      note: null,
      surface: "chat",
      preference: 1,
      weight: 1,
      off_reason: null,
      margins: [],
      loss: false
    }
    const body = {
      id: "m",
      surface: "chat",
      callable: true,
      sandboxed: false,
      reason: null,
      context_length: null,
      capabilities: [],
      prices: [],
      lowest_margin_pct: null,
      loss: false,
      routes: [
        { ...route, id: "m@one", circuit: "closed", open_for_organizations: 2 },
        { ...route, id: "m@two", circuit: "half_open" },
        { ...route, id: "m@three", circuit: "open", open_until: Date.now() / 1000 + 600 },
        { ...route, id: "m@four", circuit: "closed", failures: 1 }
      ]
    }
    const { page } = yield* openConsole({ hash: "#/models/m", answers: { "/models/m": () => ({ body }) } })
    yield* Effect.promise(async () => {
      const health = page.locator('td[data-label="Health"]')
      await health.nth(3).waitFor()
      const words = (await health.allInnerTexts()).map((text) => text.split(/\s*\n\s*/).slice(0, 3))
      assert.deepStrictEqual(words.slice(0, 2), [
        ["healthy", "circuit breaker closed", "paused for 2 organizations"],
        ["being tried again", "circuit breaker half-open"]
      ])
      assert.deepStrictEqual(words[2]?.slice(0, 2), ["paused after failures", "circuit breaker open"])
      assert.deepStrictEqual(words[3], ["failing", "circuit breaker closed"])
      assert.match(words[2]?.[2] ?? "", /^next try in \d+ min/)
      assert.deepStrictEqual(await findMisfits(page, inBothThemes(360, 1440)), [])
    })
  })

  it.scoped.skipIf(isSkipped)("are listed for members at their prices, with a first request", function* () {
    const { org } = yield* Served.customer()
    yield* Effect.orDie((yield* Organizations).update(org, { discount_percent: 50 }))
    const { page, problems } = yield* openConsole({ role: "read", org, hash: "#/models?search=gpt-5.2" })
    yield* Effect.promise(async () => {
      const table = page.getByRole("region", { name: "Models" })
      await table.waitFor()
      const headings = await table.locator("th").allInnerTexts()
      assert.deepStrictEqual(headings, [
        "Model",
        "Endpoint type",
        "Price (prompt / completion)",
        "Context",
        "Capabilities"
      ])
      await table.getByRole("link", { name: "gpt-5.2", exact: true }).click()
      await heading(page, "gpt-5.2").waitFor()
      const snippet = page.getByRole("region", { name: "Your first request" })
      await snippet.getByText("GATEWAY_KEY").first().waitFor()
      assert.include(await snippet.innerText(), "gpt-5.2")
      assert.strictEqual(
        await page.getByRole("link", { name: "Open in playground" }).getAttribute("href"),
        "#/playground?model=gpt-5.2"
      )
      assert.strictEqual(await page.getByRole("button", { name: /^Test/ }).count(), 0)
    })
    assert.deepStrictEqual(without(problems), [])
  })
})
