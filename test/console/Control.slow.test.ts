import { randomUUID } from "node:crypto"
import { Effect } from "effect"
import { Organizations } from "../../src/services/admin/Organizations.ts"
import { adminAt, read } from "../harness/client/AdminClient.ts"
import { isSkipped, openPage } from "../harness/client/Browser.ts"
import * as Served from "../harness/gateway/ServedGateway.ts"
import { assert, withLayer } from "../harness/It.ts"
import { findBarriers, openConsole, overflow } from "./ConsolePage.ts"
import { addFilter, auditOf, button, change, heading, inputLabel, narrow, without } from "./ConsoleParts.ts"
import { script } from "./Traffic.ts"

const gateway = Served.layer(Effect.succeed({ env: { SANDBOX: "true" } }))

withLayer(gateway)("settings and the audit log in the console", (it) => {
  it.scoped.skipIf(isSkipped)("an owner invites an operator by a one-time link and revokes it", function* () {
    const name = `bob-${randomUUID()}`
    const { operator, page, problems, url } = yield* openConsole({ hash: "#/settings" })
    const link = yield* Effect.promise(async () => {
      await change(page, "Invite", { Name: name })
      const dialog = page.getByRole("dialog", { name: `Sign-in link for ${name}` })
      await dialog.waitFor()
      const secrets = dialog.locator(".copy code")
      assert.isFalse(await secrets.nth(1).isVisible())
      assert.deepStrictEqual(await findBarriers(page), [])
      await dialog.getByText("Token for scripts").click()
      const [shown = "", token = ""] = await secrets.allInnerTexts()
      assert.match(shown, /#link=/)
      assert.match(token, /^ggo_/)
      assert.deepStrictEqual(await findBarriers(page), [])
      await button(dialog, "Done").click()
      await page.locator("dialog").waitFor({ state: "detached" })
      assert.notInclude(await page.content(), token)
      await change(page, `New link ${name}`)
      await button(dialog, "Done").waitFor()
      const [another = "", ...others] = await dialog.locator(".copy code").allInnerTexts()
      assert.isEmpty(others)
      assert.notStrictEqual(another, shown)
      await button(dialog, "Done").click()
      return `${url}/console${new URL(another).hash}`
    })
    const other = yield* openPage([url])
    yield* Effect.promise(async () => {
      await other.page.goto(link)
      await other.page.locator(".operator").getByText(name).waitFor()
      await other.page.goto(`${url}/console#/settings`)
      await other.page.getByRole("region", { name: "Instances" }).getByText("running").first().waitFor()
      assert.strictEqual(await other.page.getByRole("region", { name: "Operators" }).count(), 0)
      assert.deepStrictEqual(await other.page.locator("main button").allInnerTexts(), [])
      await page.reload()
      const row = page.getByRole("row", { name })
      await row.getByText("ago").first().waitFor()
      await button(page, `Edit role ${name}`).click()
      const edit = page.getByRole("dialog", { name: `Edit the role of ${name}` })
      assert.strictEqual(await edit.getByLabel("Role").inputValue(), "read")
      assert.lengthOf(await edit.getByLabel("Role").locator("option").all(), 3)
      await edit.getByLabel("Role").selectOption("write")
      await button(edit, "Save").click()
      await row.getByRole("cell", { name: "write", exact: true }).waitFor()
      await change(page, `Revoke ${name}`)
      await row.getByText("revoked").waitFor()
      await other.page.reload()
      await other.page.getByLabel("Token").waitFor()
      const own = page.getByRole("row", { name: `${operator.name} (you)` })
      assert.deepStrictEqual(await own.getByRole("button").allInnerTexts(), ["New link"])
    })
    const { data } = read(yield* adminAt(url, operator.token)("/operators"))
    const bob = data.find((one: { readonly name: string }) => one.name === name)
    assert.isNumber(bob.revoked_at)
    assert.deepStrictEqual(
      yield* auditOf(operator.name),
      ["revoke", "update", "link", "create"].map((action) => `console operators.${action} ${bob.id}`)
    )
    assert.deepStrictEqual(without(problems), [])
  })

  it.scoped.skipIf(isSkipped)("an invited operator reads, and a member writes, by default", function* () {
    const { page, problems } = yield* openConsole({ hash: "#/settings" })
    yield* Effect.promise(async () => {
      await button(page, "Invite").click()
      const role = page.getByRole("dialog").getByLabel("Role", { exact: true })
      const organization = page.getByRole("dialog").getByLabel("Organization", { exact: true })
      assert.strictEqual(await role.inputValue(), "read")
      await organization.fill("acme")
      assert.strictEqual(await role.inputValue(), "write")
      await organization.fill("")
      assert.strictEqual(await role.inputValue(), "read")
      await role.selectOption("owner")
      await organization.fill("acme")
      assert.deepStrictEqual(await role.locator("option").allInnerTexts(), [
        "Read: view everything",
        "Write: also add credits, and manage keys, webhooks and members"
      ])
      assert.strictEqual(await role.inputValue(), "write")
      await organization.fill("")
      assert.strictEqual(await role.inputValue(), "owner")
      await role.selectOption("read")
      await organization.fill("acme")
      assert.strictEqual(await role.inputValue(), "read")
    })
    assert.deepStrictEqual(without(problems), [])
  })

  it.scoped.skipIf(isSkipped)("an address is blocked and unblocked at 360 px", function* () {
    const { operator, page, problems, url } = yield* openConsole({ hash: "#/settings", role: "write", ...narrow })
    const blocked = Effect.map(adminAt(url, operator.token)("/blocklist"), (answer) =>
      read(answer).data.map(({ cidr }: { readonly cidr: string }) => cidr)
    )
    yield* Effect.promise(async () => {
      await change(page, "Block", { "IP address or range": script })
      await page.locator('[aria-invalid="true"]').fill("203.0.113.0/24")
      await page.getByRole("dialog").locator("button.primary").click()
      await page.getByRole("region", { name: "Block list" }).getByText("203.0.113.0/24").first().waitFor()
      assert.strictEqual(await overflow(page), 0)
      assert.deepStrictEqual(await findBarriers(page), [])
    })
    assert.deepStrictEqual(yield* blocked, ["203.0.113.0/24"])
    yield* Effect.promise(async () => {
      await change(page, "Unblock 203.0.113.0/24")
      await page.getByText("No blocked IP addresses.").waitFor()
    })
    assert.isEmpty(yield* blocked)
    const actions = (yield* auditOf(operator.name)).map((line) => line.split(" ").slice(0, 2).join(" "))
    assert.deepStrictEqual(actions, ["console blocklist.remove", "console blocklist.add"])
    assert.deepStrictEqual(without(problems, 400), [])
  })

  it.scoped.skipIf(isSkipped)("the audit log shows actor, action, old and new values", function* () {
    const { create } = yield* Organizations
    const { id, name } = yield* Effect.orDie(create({ name: `made ${randomUUID()}` }))
    const { operator, page, problems } = yield* openConsole({ hash: `#/organizations/${id}` })
    yield* Effect.promise(async () => {
      await change(page, "Edit", {
        Name: `${name} <b>2</b>`,
        [inputLabel("organization", "notify_below_usd")]: "0.5"
      })
      await heading(page, `${name} <b>2</b>`).waitFor()
      await change(page, "Top up", { "Amount (USD)": "3", Note: "<script>alert(1)</script>" })
      await page.getByText("Added $3.00 to").waitFor()
      await page.getByRole("main").getByRole("link", { name: "Audit log" }).click()
      await heading(page, "Audit log").waitFor()
      const rows = page.getByRole("region", { name: "Changes" }).locator("tbody tr")
      await page.getByText("2 total").waitFor()
      const [added = "", renamed = ""] = await rows.allInnerTexts()
      for (const text of [operator.name, "console", "credits.top_up", "$3.00", "<script>alert(1)</script>"]) {
        assert.include(added, text)
      }
      assert.include(renamed, "organizations.update")
      assert.match(renamed, new RegExp(`name\\s+${name} → ${name} <b>2</b>`))
      assert.match(renamed, /notify_below_usd\s+none → \$0\.50/)
      await (await addFilter(page, "Action")).fill("credits")
      await page.getByText("1 total").waitFor()
      await page.setViewportSize(narrow.viewport)
      assert.strictEqual(await overflow(page), 0)
      assert.deepStrictEqual(await findBarriers(page), [])
    })
    assert.deepStrictEqual(without(problems), [])
  })
})
