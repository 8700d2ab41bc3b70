import { Effect } from "effect"
import type { Page } from "playwright-core"
import type { RequestDetail } from "../../src/console/views/requests/RequestRows.ts"
import { isSkipped } from "../harness/client/Browser.ts"
import * as Served from "../harness/gateway/ServedGateway.ts"
import { assert, describe, withLayer } from "../harness/It.ts"
import { type ConsoleOptions, findBarriers, findMisfits, inBothThemes, openConsole } from "./ConsolePage.ts"
import { at, dashboardAnswers, hostile } from "./DashboardAnswers.ts"
import { explained, video } from "./RequestAnswers.ts"

const gateway = Served.layer(Effect.succeed({ env: { SANDBOX: "true" } }))

const opened = (given: Partial<RequestDetail> = {}, options: ConsoleOptions = {}) =>
  openConsole({
    answers: { [`/requests/${explained.id}`]: () => ({ body: { ...explained, ...given } }) },
    hash: `#/requests/${explained.id}`,
    ...options
  })

const lineOf = async (page: Page, name: string) => {
  const line = page.locator(".timeline li").filter({ has: page.getByText(name, { exact: true }) })
  return { text: await line.innerText(), tone: await line.locator(".track i").getAttribute("class") }
}

const sumOf = (page: Page, name: string) =>
  page
    .locator(".price tr")
    .filter({ has: page.getByText(name, { exact: true }) })
    .locator("td")
    .innerText()

const model = "gemini-3.6-flash"

const post = (url: string, secret: string, body: object) =>
  Effect.promise(() =>
    fetch(`${url}/v1/chat/completions`, {
      method: "POST",
      headers: {
        authorization: `Bearer ${secret}`,
        "content-type": "application/json",
        "user-agent": hostile.slice(0, 30)
      },
      body: JSON.stringify({ model, ...body })
    }).then(async (response) => {
      await response.text()
      return response.headers.get("x-request-id")
    })
  )

const asks = (content: string) => ({ messages: [{ role: "user", content }] })

withLayer(gateway)("the console", (it) => {
  describe("the view of one request", () => {
    it.scoped.skipIf(isSkipped)("shows failed attempts in text and color on one axis", function* () {
      const { page, problems } = yield* opened()
      yield* Effect.promise(async () => {
        const failed = await lineOf(page, "Attempt 1")
        assert.strictEqual(failed.tone, "bar warn")
        for (const words of ["rate limited 429", "claude-opus-5@west", hostile, "$0.0001", "theirs_1", "5 ms"]) {
          assert.include(failed.text, words)
        }
        const answered = await lineOf(page, "Attempt 2")
        assert.strictEqual(answered.tone, "bar good")
        assert.include(answered.text, "succeeded 200")
        assert.include((await lineOf(page, "Hold")).text, "0.12827 USD reserved")
        assert.include((await lineOf(page, "Refunded")).text, "at 2 h")
        assert.lengthOf(await page.locator("main img").all(), 0)
      })
      assert.deepStrictEqual(problems, [])
    })

    it.scoped.skipIf(isSkipped)("shows the error of the request and the failed attempt of its video", function* () {
      const error = { param: "n", message: hostile, hint: "Send one request per image." }
      const { page, problems } = yield* opened({ status: 400, error, video })
      yield* Effect.promise(async () => {
        const errors = page.locator("main .error-box")
        const refused = await errors.nth(0).innerText()
        const failed = await errors.nth(1).innerText()
        for (const words of [hostile, "Send one request per image.", "Parameter: n"]) assert.include(refused, words)
        for (const words of ["upstream_error", "Attempt 2 of 2: timed out", "veo@east"]) assert.include(failed, words)
        assert.lengthOf(await page.locator("main img").all(), 0)
      })
      assert.deepStrictEqual(problems, [])
    })

    it.scoped.skipIf(isSkipped)("explains the price to the last digit", function* () {
      const { page, problems } = yield* opened()
      yield* Effect.promise(async () => {
        await page.getByText("Quantity times today's rate is the charge.").waitFor()
        const rows = await page.locator(".price tbody tr").allInnerTexts()
        assert.deepStrictEqual(
          rows.slice(0, 3).map((row) => row.split("\t")),
          [
            ["prompt tokens", "515", "$5.00 per 1M tokens", "$0.002575"],
            ["cached prompt tokens", "1", "$0.0375 per 1M tokens", "$0.0000000375"],
            ["completion tokens", "52", "$25.00 per 1M tokens", "$0.0013"]
          ]
        )
        const sums = { Subtotal: "$0.003875038", Reserved: "$0.12827", Charged: "$0.003875038", Refunded: "−$0.001" }
        const rest = { "Net charge": "$0.002875038", "Provider cost": "$0.0031", Margin: "−$0.000224962" }
        for (const [name, amount] of Object.entries({ ...sums, ...rest })) {
          assert.strictEqual(await sumOf(page, name), amount, name)
        }
        assert.strictEqual(await sumOf(page, "Margin %"), "−7.8 %")
        await page.locator(".badge", { hasText: /^partially refunded$/ }).waitFor()
      })
      assert.deepStrictEqual(problems, [])
    })

    it.scoped.skipIf(isSkipped)("links to its organization, model, route and requests with the same ID", function* () {
      const { page } = yield* opened({ video })
      yield* Effect.promise(async () => {
        await page.getByRole("heading", { name: "Details" }).waitFor()
        const links = await page.locator("main a").evaluateAll((all) => all.map((one) => one.getAttribute("href")))
        const wanted = ["#/organizations/org_1", "#/videos/vid_1", `#/requests/${explained.others?.[0]}`]
        assert.includeMembers(links, [...wanted, "#/requests?route=claude-opus-5%40east"])
        await page.getByText("usage estimated, unheard_of").waitFor()
      })
    })

    it.scoped.skipIf(isSkipped)("refunds by keyboard after it shows the effect", function* () {
      const { page, problems } = yield* opened({ org_name: "acme" }, { role: "write" })
      yield* Effect.promise(async () => {
        const sent: Array<unknown> = []
        await page.route("**/admin/v1/credits/refunds", async (route) => {
          sent.push(route.request().postDataJSON())
          await route.fulfill({ status: 201, json: { id: "9", at, kind: "refund", amount_usd: 0.0005 } })
        })
        await page.getByRole("button", { name: "Refund…" }).press("Enter")
        const dialog = page.getByRole("dialog", { name: "Refund this request" })
        await dialog.getByText("This adds $0.002875038 to the balance of acme").waitFor()
        await dialog.getByLabel("Amount (USD)").fill("0.0005")
        await dialog.getByText("The net charge of this request is then $0.002375038").waitFor()
        assert.deepStrictEqual(await findBarriers(page), [])
        await page.keyboard.press("Tab")
        await page.keyboard.type(hostile)
        await page.keyboard.press("Enter")
        await page.getByText("Refunded $0.0005.").waitFor()
        assert.deepStrictEqual(sent, [{ request_id: explained.id, amount_usd: "0.0005", note: hostile }])
      })
      assert.deepStrictEqual(problems, [])
    })

    it.scoped.skipIf(isSkipped)("shows an error at the field for a refund above the charge", function* () {
      const { page } = yield* opened({}, { role: "write" })
      yield* Effect.promise(async () => {
        const message = "Only 0.001 of the 0.003875038 USD can still be refunded."
        await page.route("**/admin/v1/credits/refunds", (route) =>
          route.fulfill({ status: 400, json: { error: { message, param: "amount_usd" } } })
        )
        await page.getByRole("button", { name: "Refund…" }).click()
        await page.getByLabel("Amount (USD)").fill("1")
        await page.getByText("You can refund at most $0.002875038.").waitFor()
        await page.getByLabel("Note").fill("too much")
        await page.keyboard.press("Enter")
        await page.getByRole("dialog").getByText(message).first().waitFor()
        assert.strictEqual(await page.getByLabel("Amount (USD)").getAttribute("aria-invalid"), "true")
        assert.strictEqual(await page.getByLabel("Amount (USD)").inputValue(), "1")
      })
    })

    it.scoped.skipIf(isSkipped)("has no refund for readers or unpaid requests", function* () {
      const reader = yield* opened({}, { role: "read" })
      const free = yield* opened({ price: { ...explained.price, paid_usd: 0 } })
      for (const { page } of [reader, free]) {
        yield* Effect.promise(async () => {
          await page.getByRole("heading", { name: "Price breakdown" }).waitFor()
          assert.strictEqual(await page.getByRole("button", { name: "Refund…" }).count(), 0)
        })
      }
    })

    it.scoped.skipIf(isSkipped)("fits every width in both themes, and reports a missing request", function* () {
      const { page, problems } = yield* opened()
      yield* Effect.promise(async () => {
        await page.getByRole("heading", { name: "Price breakdown" }).waitFor()
        assert.deepStrictEqual(await findMisfits(page, inBothThemes(360, 900, 1440)), [])
      })
      assert.deepStrictEqual(problems, [])
      const message = "There is no request nothing in the log."
      const nothing = yield* openConsole({
        answers: { "/requests/nothing": () => ({ status: 404, body: { error: { message } } }) },
        hash: "#/requests/nothing"
      })
      yield* Effect.promise(() => nothing.page.getByRole("alert").getByText(message).waitFor())
    })
  })

  describe("requests of a real gateway", () => {
    it.scoped.skipIf(isSkipped)("are explained and refunded two clicks from the first view", function* () {
      const { url } = yield* Served.ServedGateway
      const { funds, secret } = yield* Served.customer()
      const row = yield* Served.logged(yield* post(url, secret, asks("[sandbox status=503 routes=1] Hi.")))
      const before = yield* funds
      const { page, problems } = yield* openConsole({ role: "write", answers: dashboardAnswers() })
      yield* Effect.promise(async () => {
        await page.getByRole("navigation").getByRole("link", { name: "Requests" }).click()
        await page.locator(`a[href="#/requests/${row.id}"]`).click()
        const attempts = page.locator(".timeline li").filter({ hasText: "Attempt" })
        assert.include(await attempts.nth(0).innerText(), "failed 503")
        assert.include(await attempts.nth(0).innerText(), "sandbox fault: status 503")
        assert.include(await attempts.nth(1).innerText(), "succeeded 200")
        await page.getByText("Quantity times rate is the charge.").waitFor()
        const amounts = await page.locator(".price tr td:last-child").allInnerTexts()
        const [prompt = 0, completion = 0, sum = 0] = amounts.map((text) => Number(text.replace("$", "")))
        assert.strictEqual((prompt + completion).toFixed(12), sum.toFixed(12))
        assert.strictEqual(BigInt(Math.round(sum * 1e9)), row.charge)

        await page.getByRole("button", { name: "Refund…" }).click()
        await page.getByLabel("Amount (USD)").fill("0.000000001")
        await page.getByLabel("Note").fill(hostile)
        await page.getByRole("button", { name: "Refund $0.000000001" }).dblclick()
        await page.getByRole("region", { name: "Ledger entries" }).getByText(hostile).waitFor()
        assert.strictEqual(await page.locator(".timeline li").filter({ hasText: "Refunded" }).count(), 1)
      })
      assert.deepStrictEqual(problems, [])
      const after = yield* funds
      assert.strictEqual(after.balance, before.balance + 1n)
    })

    it.scoped.skipIf(isSkipped)(
      "are found by every filter of the view, and their streams and refusals shown",
      function* () {
        const { url } = yield* Served.ServedGateway
        const { key, org, secret } = yield* Served.customer()
        const cut = yield* Served.logged(yield* post(url, secret, { ...asks("[sandbox cut=3] Hi."), stream: true }))
        const unknown = yield* Served.logged(yield* post(url, secret, { ...asks("Hi."), model: hostile }))
        const { page, problems } = yield* openConsole({ role: "read", answers: dashboardAnswers() })
        const search = { organization: org, key, surface: "chat" }
        const found = {
          [cut.id]: {
            ...search,
            status: "error",
            code: "stream_error",
            route: `${model}@sandbox`,
            search: cut.requestId
          },
          [unknown.id]: { ...search, status: "404", code: "model_not_found", model: hostile, since: "24h" }
        }
        yield* Effect.promise(async () => {
          for (const [id, query] of Object.entries(found)) {
            await page.goto(`${url}/console#/requests?${new URLSearchParams(query).toString()}`)
            await page.getByText("1 total").waitFor()
            await page.locator(`a[href="#/requests/${id}"]`).click()
            await page.getByRole("heading", { name: "Price breakdown" }).waitFor()
          }
          assert.strictEqual(await page.title(), `Request ${unknown.requestId} · Gateway`)
          assert.lengthOf(await page.locator("main img").all(), 0)
          await page.goBack()
          await page.getByText("1 total").waitFor()
          const csv = await page.getByRole("link", { name: "CSV" }).getAttribute("href")
          const answer = await page.request.get(`${url}/${csv}`)
          assert.strictEqual(answer.status(), 200)
          const lines = (await answer.text()).trim().split("\r\n")
          assert.lengthOf(lines, 2)
          assert.include(lines[1], unknown.id)
        })
        assert.deepStrictEqual(problems, [])
      }
    )
  })
})
