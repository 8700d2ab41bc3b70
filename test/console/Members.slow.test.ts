import { randomUUID } from "node:crypto"
import { Effect } from "effect"
import type { Page } from "playwright-core"
import { vi } from "vitest"
import { OrganizationScope } from "../../src/domain/OrganizationScope.ts"
import { ApiKeys } from "../../src/services/access/ApiKeys.ts"
import { Operators } from "../../src/services/admin/Operators.ts"
import { Organizations } from "../../src/services/admin/Organizations.ts"
import { hire } from "../harness/client/AdminClient.ts"
import { isSkipped, openPage } from "../harness/client/Browser.ts"
import { chat, talk } from "../harness/client/HttpCalls.ts"
import * as Served from "../harness/gateway/ServedGateway.ts"
import { assert, withLayer } from "../harness/It.ts"
import { findMisfits, inBothThemes, openConsole } from "./ConsolePage.ts"
import { auditOf, button, change, heading, inputLabel, narrow, tabTo, without } from "./ConsoleParts.ts"

const gateway = Served.layer(Effect.succeed({ env: { SANDBOX: "true" } }))

const own = [
  "Overview",
  "Models",
  "Playground",
  "Requests",
  "Usage",
  "Videos",
  "Keys",
  "Webhooks",
  "Members",
  "Statements"
]
const ofOperators = ["organizations", "organizations/org_1", "ledger", "holds", "audit", "settings", "payments"]

const box = (page: Page) => page.getByRole("dialog", { name: "Search" }).getByRole("combobox")
const options = (page: Page) => page.getByRole("option").allInnerTexts()

withLayer(gateway)("a member in the console", (it) => {
  it.scoped.skipIf(isSkipped)("has its own views, and cannot open others by address or shortcut", function* () {
    const { org } = yield* Served.customer()
    const { page, problems, url } = yield* openConsole({ role: "read", org })
    const asked: Array<string> = []
    page.on("request", (request) => asked.push(new URL(request.url()).pathname))
    yield* Effect.promise(async () => {
      await heading(page, "Overview").waitFor()
      assert.deepStrictEqual(await page.getByRole("navigation").getByRole("link").allInnerTexts(), own)
      for (const path of ofOperators) {
        await page.evaluate(`location.hash = "#/${path}"`)
        await page.getByText("This page does not exist.").waitFor()
        await page.evaluate("location.hash = '#/usage'")
        await heading(page, "Usage").waitFor()
      }
      await page.keyboard.press("?")
      const listed = await page.getByRole("dialog", { name: "Keyboard shortcuts" }).locator("dd").allInnerTexts()
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

  it.scoped.skipIf(isSkipped)("finds its own records, and none of another organization", function* () {
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
      // A key pressed while the previous search closes opens no new one.
      await box(page).waitFor({ state: "detached" })
      await page.keyboard.press("/")
      await box(page).fill(text)
    }
    yield* Effect.promise(async () => {
      await search(name)
      await page.getByRole("status").getByText("1 result").waitFor()
      assert.deepStrictEqual(await options(page), [`${named}\n${ours.key}`])
      await page.keyboard.press("Enter")
      await page.waitForURL(`${url}/console#/keys`)
      for (const text of [other?.requestId ?? "", theirs.org, "Ledger"]) {
        await search(text)
        await page.getByText("No results.").waitFor()
        await page.keyboard.press("Escape")
        await box(page).waitFor({ state: "detached" })
      }
      await search(row?.requestId ?? "")
      await page.keyboard.press("Enter")
      await page.waitForURL(`${url}/console#/requests/${row?.id}`)
    })
    assert.deepStrictEqual(without(problems), [])
  })

  it.scoped.skipIf(isSkipped)("sees errors by code with links to their requests", function* () {
    const customer = yield* Served.customer()
    yield* Effect.all(Array.from({ length: 3 }, () => chat(customer, talk("unheard-of"))))
    const { headers } = yield* chat(customer, talk("gpt-5.2", "[sandbox status=503]"))
    yield* Served.logged(headers.get("x-request-id"))
    const { page, problems, url } = yield* openConsole({ role: "read", org: customer.org })
    yield* Effect.promise(async () => {
      const refused = page.getByRole("region", { name: "Failed requests" }).getByRole("row", { name: "404" })
      // Today's counts come from a second request.
      await vi.waitFor(async () => assert.match(await refused.innerText(), /404\s+model_not_found\s+3\s+3\s/), {
        timeout: 20_000
      })
      await refused.getByRole("link").click()
      await page.waitForURL(`${url}/console#/requests?status=404&code=model_not_found&since=7d`)
      await page.getByText("3 total").waitFor()
    })
    assert.deepStrictEqual(without(problems), [])
  })

  it.scoped.skipIf(isSkipped)("limits, reissues and revokes keys, and adds an endpoint", function* () {
    const { org } = yield* Served.customer()
    const { page, problems } = yield* openConsole({ role: "write", org, hash: "#/keys" })
    yield* Effect.promise(async () => {
      const row = page.getByRole("row", { name: "backend" })
      await change(page, "Create key", { Name: "backend", Models: "gpt-*", [inputLabel("key", "tpm")]: "90000" })
      await button(page.getByRole("dialog", { name: "Your new key" }), "Done").click()
      await row.getByText("gpt-*").waitFor()
      await change(page, "Edit backend", {
        Name: "backend 2",
        [inputLabel("key", "concurrency")]: "2",
        [inputLabel("key", "cap_usd")]: "7"
      })
      await row.getByText("backend 2").waitFor()
      await row.getByText("$7.00").waitFor()
      await button(page, "Reissue backend 2").click()
      const dialog = page.getByRole("dialog")
      await dialog.getByLabel("Current secret").selectOption({ index: 1 })
      await dialog.locator("button.primary").click()
      await button(page.getByRole("dialog", { name: "Your new key" }), "Done").click()
      await row.getByText("old secret valid until").waitFor()
      await change(page, "Revoke backend 2")
      await row.waitFor({ state: "detached" })

      await page.evaluate("location.hash = '#/webhooks'")
      await change(page, "Add endpoint", { URL: "https://hooks.example/" })
      await button(page.getByRole("dialog", { name: "Signing secret" }), "Done").click()
      await page.getByRole("region", { name: "Endpoints" }).getByText("https://hooks.example/").waitFor()
    })
    assert.deepStrictEqual(without(problems), [])
  })

  it.scoped.skipIf(isSkipped)("loses the buttons of a role that was taken away, at the first refusal", function* () {
    const { org } = yield* Served.customer()
    const { operator, page, problems } = yield* openConsole({ role: "write", org, hash: "#/keys" })
    yield* Effect.promise(() => button(page, "Create key").waitFor())
    yield* (yield* Operators).update(OrganizationScope.all, operator.id, { role: "read" })
    yield* Effect.promise(async () => {
      await change(page, "Create key", { Name: "late" })
      await page.getByText("To create keys, you need the write role.").waitFor()
      assert.strictEqual(await button(page, "Create key").count(), 0)
    })
    assert.deepStrictEqual(without(problems, 403), [])
  })

  it.scoped.skipIf(isSkipped)("invites another by keyboard at 360 px, makes a new link, and revokes it", function* () {
    const { org } = yield* Served.customer()
    const stranger = yield* hire("read", (yield* Served.customer()).org)
    const { operator, page, problems, url } = yield* openConsole({ role: "write", org, hash: "#/members", ...narrow })
    const name = `mia ${randomUUID()}`
    const dialog = page.getByRole("dialog", { name: `Sign-in link for ${name}` })
    const row = page.getByRole("row", { name })
    const link = yield* Effect.promise(async () => {
      await heading(page, "Members").waitFor()
      await page.getByRole("row", { name: `${operator.name} (you)` }).waitFor()
      assert.deepStrictEqual(await findMisfits(page, inBothThemes(360)), [])
      await tabTo(page, "Invite")
      await page.keyboard.press("Enter")
      const form = page.getByRole("dialog", { name: "Invite a member of" })
      assert.deepStrictEqual(await form.getByLabel("Role").locator("option").allInnerTexts(), [
        "Read: view everything",
        "Write: also add credits, and manage keys, webhooks and members"
      ])
      await form.getByLabel("Name", { exact: true }).fill(stranger.name)
      await page.keyboard.press("Enter")
      await form.getByText(`The name ${stranger.name} is not available. Choose another one.`).waitFor()
      assert.deepStrictEqual(await findMisfits(page, inBothThemes(360)), [])
      await form.getByLabel("Name", { exact: true }).fill(name)
      assert.strictEqual(await form.getByLabel("Role").inputValue(), "write")
      await page.keyboard.press("Enter")
      await dialog.getByText("expires in 24 hours").waitFor()
      await button(dialog, "Copy the link").waitFor()
      assert.deepStrictEqual(await findMisfits(page, inBothThemes(360)), [])
      await button(dialog, "Done").click()
      await row.getByText("active").waitFor()
      await row.getByText("never").waitFor()
      await change(page, `New link ${name}`)
      const another = await dialog.locator(".copy code").innerText()
      await button(dialog, "Done").click()
      return `${url}/console${new URL(another).hash}`
    })
    const invitee = yield* openPage([url])
    yield* Effect.promise(async () => {
      await invitee.page.goto(link)
      await heading(invitee.page, "Overview").waitFor()
      await invitee.page.locator(".operator").getByText(name).waitFor()
      await button(page, `Edit role ${name}`).click()
      const edit = page.getByRole("dialog", { name: `Edit the role of ${name}` })
      await edit.getByLabel("Role").selectOption("read")
      assert.lengthOf(await edit.getByLabel("Role").locator("option").all(), 2)
      assert.deepStrictEqual(await findMisfits(page, inBothThemes(360)), [])
      await button(edit, "Save").click()
      await row.getByRole("cell", { name: "read", exact: true }).waitFor()
      await change(page, `Revoke ${name}`)
      await row.getByText("revoked").waitFor()
      await invitee.page.getByRole("navigation").getByRole("link", { name: "Members" }).click()
      await invitee.page.getByLabel("Token").waitFor()
    })
    assert.deepStrictEqual(
      (yield* auditOf(operator.name)).map((line) => line.split(" ").slice(0, 2).join(" ")),
      ["revoke", "update", "link", "create"].map((action) => `console operators.${action}`)
    )
    assert.deepStrictEqual(without(problems, 409), [])
    assert.deepStrictEqual(without(invitee.problems, 401), [])
  })

  it.scoped.skipIf(isSkipped)("only sees the list with the role read", function* () {
    const { org } = yield* Served.customer()
    const writer = yield* hire("write", org)
    const { page, problems } = yield* openConsole({ role: "read", org, hash: "#/members" })
    yield* Effect.promise(async () => {
      await page.getByRole("row", { name: writer.name }).waitFor()
      assert.deepStrictEqual(await page.locator("main button").allInnerTexts(), [])
      assert.strictEqual(await page.getByRole("columnheader", { name: "Actions" }).count(), 0)
    })
    assert.deepStrictEqual(without(problems), [])
  })
})

withLayer(gateway)("an organization in the console", (it) => {
  it.scoped.skipIf(isSkipped)("has its members for owners only, who invite and revoke", function* () {
    const { org } = yield* Served.customer()
    const member = yield* hire("read", org)
    const { page, problems } = yield* openConsole({ role: "owner", hash: `#/organizations/${org}` })
    const name = `mia ${randomUUID()}`
    yield* Effect.promise(async () => {
      const members = page.getByRole("region", { name: "Members" }).first()
      await members.getByRole("row", { name: member.name }).waitFor()
      await button(members, "Invite").click()
      await page.getByRole("dialog").getByLabel("Name", { exact: true }).fill(name)
      await page.keyboard.press("Enter")
      await button(page.getByRole("dialog", { name: `Sign-in link for ${name}` }), "Done").click()
      await members.getByRole("row", { name }).getByText("active").waitFor()
      await change(page, `Revoke ${member.name}`)
      await members.getByRole("row", { name: member.name }).getByText("revoked").waitFor()
    })
    const writer = yield* openConsole({ role: "write", hash: `#/organizations/${org}` })
    yield* Effect.promise(async () => {
      await writer.page.getByRole("region", { name: "Details" }).waitFor()
      assert.strictEqual(await writer.page.getByRole("region", { name: "Members" }).count(), 0)
    })
    assert.deepStrictEqual([...without(problems), ...without(writer.problems)], [])
  })
})
