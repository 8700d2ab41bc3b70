import { assert, layer as withLayer } from "@effect/vitest"
import { Effect } from "effect"
import { isSkipped } from "../harness/client/Browser.ts"
import { openConsole } from "../harness/client/ConsolePage.ts"
import * as Served from "../harness/gateway/ServedGateway.ts"
import { hostile, nowAnswers } from "./NowAnswers.ts"

const gateway = Served.layer(Effect.succeed({ env: { SANDBOX: "true" } }))

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

/** A view that is left cancels what it asked for. */
const isProblem = (problem: string) => !problem.includes("ERR_ABORTED")

const asks = (content: string) => ({ messages: [{ role: "user", content }] })

withLayer(gateway, { excludeTestServices: true })("requests of a real gateway", (it) => {
  it.scoped.skipIf(isSkipped)("are explained two clicks from the first view, and refunded there", () =>
    Effect.gen(function* () {
      const { url } = yield* Served.ServedGateway
      const { funds, secret } = yield* Served.customer()
      const row = yield* Served.logged(yield* post(url, secret, asks("[sandbox status=503 routes=1] Hi.")))
      const before = yield* funds
      const { page, problems } = yield* openConsole({ role: "write", answers: nowAnswers() })
      yield* Effect.promise(async () => {
        await page.getByRole("navigation").getByRole("link", { name: "Requests" }).click()
        await page.locator(`a[href="#/requests/${row.id}"]`).click()
        const attempts = page.locator(".timeline li").filter({ hasText: "Attempt" })
        assert.include(await attempts.nth(0).innerText(), "failed 503")
        assert.include(await attempts.nth(0).innerText(), "sandbox fault: status 503")
        assert.include(await attempts.nth(1).innerText(), "answered 200")
        await page.getByText("Today's rates give exactly the charge.").waitFor()
        const amounts = await page.locator(".price tr td:last-child").allInnerTexts()
        const [prompt = 0, completion = 0, sum = 0] = amounts.map((text) => Number(text.replace("$", "")))
        assert.strictEqual((prompt + completion).toFixed(12), sum.toFixed(12))
        assert.strictEqual(BigInt(Math.round(sum * 1e9)), row.charge)

        await page.getByRole("button", { name: "Refund…" }).click()
        await page.getByLabel("Amount in USD").fill("0.000000001")
        await page.getByLabel("Note").fill(hostile)
        await page.getByRole("button", { name: "Refund $0.000000001" }).dblclick()
        await page.getByRole("region", { name: "Ledger entries" }).getByText(hostile).waitFor()
        assert.strictEqual(await page.locator(".timeline li").filter({ hasText: "Refunded" }).count(), 1)
      })
      assert.deepStrictEqual(problems.filter(isProblem), [])
      const after = yield* funds
      assert.strictEqual(after.balance, before.balance + 1n)
    })
  )

  it.scoped.skipIf(isSkipped)("are found by every filter of the view, and their streams and refusals shown", () =>
    Effect.gen(function* () {
      const { url } = yield* Served.ServedGateway
      const { key, org, secret } = yield* Served.customer()
      const cut = yield* Served.logged(yield* post(url, secret, { ...asks("[sandbox cut=3] Hi."), stream: true }))
      const unknown = yield* Served.logged(yield* post(url, secret, { ...asks("Hi."), model: hostile }))
      const { page, problems } = yield* openConsole({ role: "read", answers: nowAnswers() })
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
          await page.getByText("1 in all").waitFor()
          await page.locator(`a[href="#/requests/${id}"]`).click()
          await page.getByRole("heading", { name: "Why this price" }).waitFor()
        }
        assert.strictEqual(await page.title(), `${unknown.requestId} · Gateway`)
        assert.lengthOf(await page.locator("main img").all(), 0)
        await page.goBack()
        await page.getByText("1 in all").waitFor()
        const csv = await page.getByRole("link", { name: "CSV" }).getAttribute("href")
        const answer = await page.request.get(`${url}/${csv}`)
        assert.strictEqual(answer.status(), 200)
        const lines = (await answer.text()).trim().split("\r\n")
        assert.lengthOf(lines, 2)
        assert.include(lines[1], unknown.id)
      })
      assert.deepStrictEqual(problems.filter(isProblem), [])
    })
  )
})
