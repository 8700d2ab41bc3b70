import { randomUUID } from "node:crypto"
import { Effect } from "effect"
import type { Page } from "playwright-core"
import { vi } from "vitest"
import { OrganizationScope } from "../../src/domain/OrganizationScope.ts"
import { ApiKeys } from "../../src/services/access/ApiKeys.ts"
import { Organizations } from "../../src/services/admin/Organizations.ts"
import { isSkipped } from "../harness/client/Browser.ts"
import { chat, talk } from "../harness/client/HttpCalls.ts"
import * as Served from "../harness/gateway/ServedGateway.ts"
import { assert, withLayer } from "../harness/It.ts"
import { openConsole } from "./ConsolePage.ts"
import { button, change, heading, without } from "./ConsoleParts.ts"

const gateway = Served.layer(Effect.succeed({ env: { SANDBOX: "true" } }))

const own = ["Overview", "Requests", "Usage", "Keys", "Videos", "Webhooks", "Statements"]
const ofOperators = [
  "organizations",
  "organizations/org_1",
  "ledger",
  "holds",
  "routes",
  "audit",
  "settings",
  "payments"
]

const box = (page: Page) => page.getByRole("dialog", { name: "Search" }).getByRole("combobox")
const options = (page: Page) => page.getByRole("option").allInnerTexts()

withLayer(gateway)("a member in the console", (it) => {
  it.scoped.skipIf(isSkipped)("has views of its own, and no other by its address or its key", function* () {
    const { org } = yield* Served.customer()
    const { page, problems, url } = yield* openConsole({ role: "read", org })
    const asked: Array<string> = []
    page.on("request", (request) => asked.push(new URL(request.url()).pathname))
    yield* Effect.promise(async () => {
      await heading(page, "Overview").waitFor()
      assert.deepStrictEqual(await page.getByRole("navigation").getByRole("link").allInnerTexts(), own)
      for (const path of ofOperators) {
        await page.evaluate(`location.hash = "#/${path}"`)
        await page.getByText("There is no such view.").waitFor()
        await page.evaluate("location.hash = '#/usage'")
        await heading(page, "Usage").waitFor()
      }
      await page.keyboard.press("?")
      const listed = await page.getByRole("dialog", { name: "Shortcuts" }).locator("dd").allInnerTexts()
      assert.deepStrictEqual(listed.slice(0, own.length), own)
      await page.keyboard.press("Escape")
      await page.locator("dialog").waitFor({ state: "detached" })
      for (const key of ["l", "s", "k"]) {
        await page.keyboard.press("g")
        await page.keyboard.press(key)
      }
      await page.waitForURL(`${url}/console#/keys`)
      await heading(page, "Keys").waitFor()
    })
    assert.notIncludeMembers(asked, ["/admin/v1/organizations", "/admin/v1/payments", "/admin/v1/now"])
    assert.deepStrictEqual(without(problems), [])
  })

  it.scoped.skipIf(isSkipped)("finds what is its own, and nothing of another organization", function* () {
    const name = `Northwind ${randomUUID()}`
    const ours = yield* Served.customer()
    const theirs = yield* Served.customer()
    const named = `${name} backend`
    for (const { key, org } of [ours, theirs]) {
      yield* Effect.orDie((yield* ApiKeys).update(OrganizationScope.all, key, { name: named }))
      yield* Effect.orDie((yield* Organizations).update(org, { name: `${name} ${org}` }))
    }
    const answers = yield* Effect.forEach([ours, theirs], (customer) => chat(customer, talk("gpt-5.2")))
    const [row, other] = yield* Effect.forEach(answers, ({ headers }) => Served.logged(headers.get("x-request-id")))
    const { page, problems, url } = yield* openConsole({ role: "read", org: ours.org })
    const search = async (text: string) => {
      // A key that is pressed while the last search still closes opens none.
      await box(page).waitFor({ state: "detached" })
      await page.keyboard.press("/")
      await box(page).fill(text)
    }
    yield* Effect.promise(async () => {
      await search(name)
      await page.getByRole("status").getByText("1 found").waitFor()
      assert.deepStrictEqual(await options(page), [`${named}\n${ours.key}`])
      await page.keyboard.press("Enter")
      await page.waitForURL(`${url}/console#/keys`)
      for (const text of [other?.requestId ?? "", theirs.org, "Ledger"]) {
        await search(text)
        await page.getByText("Nothing matches.").waitFor()
        await page.keyboard.press("Escape")
        await box(page).waitFor({ state: "detached" })
      }
      await search(row?.requestId ?? "")
      await page.keyboard.press("Enter")
      await page.waitForURL(`${url}/console#/requests/${row?.id}`)
    })
    assert.deepStrictEqual(without(problems), [])
  })

  it.scoped.skipIf(isSkipped)("sees why requests were refused, and is led to them", function* () {
    const customer = yield* Served.customer()
    yield* Effect.all(Array.from({ length: 3 }, () => chat(customer, talk("unheard-of"))))
    const { headers } = yield* chat(customer, talk("gpt-5.2", "[sandbox status=503]"))
    yield* Served.logged(headers.get("x-request-id"))
    const { page, problems, url } = yield* openConsole({ role: "read", org: customer.org })
    yield* Effect.promise(async () => {
      const refused = page.getByRole("region", { name: "Refused or failed" }).getByRole("row", { name: "404" })
      // Today's come by a question of their own.
      await vi.waitFor(async () => assert.match(await refused.innerText(), /404\s+model_not_found\s+3\s+3\s/), {
        timeout: 20_000
      })
      await refused.getByRole("link").click()
      await page.waitForURL(`${url}/console#/requests?status=404&code=model_not_found&since=7d`)
      await page.getByText("3 in all").waitFor()
    })
    assert.deepStrictEqual(without(problems), [])
  })

  it.scoped.skipIf(isSkipped)("limits, reissues and revokes keys, and adds an endpoint", function* () {
    const { org } = yield* Served.customer()
    const { page, problems } = yield* openConsole({ role: "write", org, hash: "#/keys" })
    yield* Effect.promise(async () => {
      const row = page.getByRole("row", { name: "backend" })
      await change(page, "Create key", { Name: "backend", Models: "gpt-*", "Tokens a minute": "90000" })
      await button(page.getByRole("dialog", { name: "The key" }), "Done").click()
      await row.getByText("gpt-*").waitFor()
      await change(page, "Edit backend", { Name: "backend 2", "Requests at once": "2", "May spend, in USD": "7" })
      await row.getByText("backend 2").waitFor()
      await row.getByText("$7.00").waitFor()
      await button(page, "Reissue backend 2").click()
      const dialog = page.getByRole("dialog")
      await dialog.getByLabel("The old secret").selectOption({ index: 1 })
      await dialog.locator("button.primary").click()
      await button(page.getByRole("dialog", { name: "The key" }), "Done").click()
      await row.getByText("old secret until").waitFor()
      await change(page, "Revoke backend 2")
      await row.waitFor({ state: "detached" })

      await page.evaluate("location.hash = '#/webhooks'")
      await change(page, "Add an endpoint", { URL: "https://hooks.example/" })
      await button(page.getByRole("dialog", { name: "The endpoint's secret" }), "Done").click()
      await page.getByRole("region", { name: "Endpoints" }).getByText("https://hooks.example/").waitFor()
    })
    assert.deepStrictEqual(without(problems), [])
  })
})
