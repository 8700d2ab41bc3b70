import { randomUUID } from "node:crypto"
import { Effect } from "effect"
import type { Page } from "playwright-core"
import { NanoUsd } from "../../src/domain/Money.ts"
import { OrganizationScope } from "../../src/domain/OrganizationScope.ts"
import { Audit } from "../../src/services/admin/AuditLog.ts"
import { Organizations } from "../../src/services/admin/Organizations.ts"
import { isSkipped } from "../harness/client/Browser.ts"
import * as Served from "../harness/gateway/ServedGateway.ts"
import { assert, withLayer } from "../harness/It.ts"
import { findBarriers, openConsole, overflow, waitForValue } from "./ConsolePage.ts"
import { button, heading, inputLabel, narrow, tabTo, without } from "./ConsoleParts.ts"

const gateway = Served.layer(Effect.succeed({ env: { SANDBOX: "true" } }))

const tile = (page: Page, label: string) => page.locator(".stat", { hasText: label }).locator(".figure")

const made = Effect.fnUntraced(function* (name = `made ${randomUUID()}`, nano = 0n) {
  const { create } = yield* Organizations
  return yield* Effect.orDie(create({ name, ...(nano > 0n && { credits: NanoUsd(nano) }) }))
})

withLayer(gateway)("organizations in the console", (it) => {
  it.scoped.skipIf(isSkipped)("one is created, changed and suspended with the keyboard only", function* () {
    const { operator, page, problems } = yield* openConsole({ hash: "#/nowhere" })
    const name = `acme ${randomUUID()}`
    yield* Effect.promise(async () => {
      await page.keyboard.press("g")
      await page.keyboard.press("o")
      await heading(page, "Organizations").waitFor()
      await tabTo(page, "Create organization")
      await page.keyboard.press("Enter")
      await page.getByRole("dialog").waitFor()
      await page.keyboard.type(name)
      await page.keyboard.press("Tab")
      await page.keyboard.type("2.000000001")
      await page.keyboard.press("Enter")
      await heading(page, name).waitFor()
      assert.strictEqual(await tile(page, "Available").innerText(), "$2.000000001")
      await tabTo(page, "Edit")
      await page.keyboard.press("Enter")
      await page.getByLabel("Name").press("End")
      await page.keyboard.type(" & co")
      await page.keyboard.press("Enter")
      await heading(page, `${name} & co`).waitFor()
      assert.strictEqual(await page.evaluate("document.activeElement.textContent"), "Edit")
      await tabTo(page, "Suspend")
      await page.keyboard.press("Enter")
      await page.getByRole("dialog").waitFor()
      await tabTo(page, "Suspend")
      await page.keyboard.press("Enter")
      await page.getByText("suspended", { exact: true }).waitFor()
      await page.getByRole("link", { name: "Organizations" }).click()
      await page.getByRole("link", { name: `${name} & co` }).waitFor()
    })
    const rows = yield* (yield* Audit).list(OrganizationScope.all, { actor: operator.name, limit: 10 })
    assert.deepStrictEqual(
      rows.map(({ action, via }) => `${via} ${action}`),
      ["console organizations.suspend", "console organizations.update", "console organizations.create"]
    )
    assert.deepStrictEqual(without(problems), [])
  })

  it.scoped.skipIf(isSkipped)("an error of the gateway appears at its field and the input stays", function* () {
    const { name } = yield* made()
    const { page, problems } = yield* openConsole({ hash: "#/organizations" })
    yield* Effect.promise(async () => {
      await button(page, "Create organization").click()
      await page.getByLabel("Name").fill(name)
      await button(page, "Create").click()
      const refused = page.locator('[aria-invalid="true"]')
      await refused.waitFor()
      assert.strictEqual(await refused.inputValue(), name)
      const problem = await page.locator(".field .problem").innerText()
      assert.strictEqual(problem, `An organization named ${name} already exists.`)
      assert.deepStrictEqual(await findBarriers(page), [])
      await page.getByLabel("Name").fill(`${name} 2`)
      await button(page, "Create").click()
      await heading(page, `${name} 2`).waitFor()
    })
    assert.deepStrictEqual(without(problems, 409), [])
  })

  it.scoped.skipIf(isSkipped)("a discount is confirmed for its own losses, also if no costs are loaded", function* () {
    const { id } = yield* made()
    const { page, problems } = yield* openConsole({ hash: `#/organizations/${id}` })
    const dialog = page.getByRole("dialog")
    const alert = dialog.getByRole("alert")
    const discount = dialog.getByLabel(inputLabel("organization", "discount_percent"), { exact: true })
    const consent = dialog.getByLabel("Sell below cost")
    yield* Effect.promise(async () => {
      let answer = () => {}
      const isReleased = new Promise<void>((done) => (answer = done))
      await page.route("**/admin/v1/models", async (route) => {
        await isReleased
        await route.continue()
      })
      await button(page, "Edit").click()
      await discount.fill("60")
      await alert.getByText("The costs of the models are not loaded.").waitFor()
      await consent.check()
      answer()
      await alert.getByText("below the provider's cost").waitFor()
      assert.isFalse(await consent.isChecked())
      await consent.check()
      await discount.fill("61")
      await alert.getByText("At a discount of 61 %").waitFor()
      assert.isFalse(await consent.isChecked())
      await discount.fill("150")
      await consent.waitFor({ state: "detached" })
      await page.setViewportSize(narrow.viewport)
      const widths = await dialog
        .locator("input[type=checkbox]")
        .evaluateAll((all) => all.map((one) => one.clientWidth))
      assert.deepStrictEqual(widths, [13])
      await button(dialog, "Cancel").click()
    })
    yield* Effect.orDie((yield* Organizations).update(id, { discount_percent: 60 }))
    yield* Effect.promise(async () => {
      await page.getByText("60 %", { exact: true }).waitFor()
      await button(page, "Edit").click()
      await waitForValue(discount, "60")
    })
    yield* Effect.orDie((yield* Organizations).update(id, { discount_percent: 5 }))
    yield* Effect.promise(async () => {
      await page.getByText("5 %", { exact: true }).waitFor({ state: "attached" })
      assert.strictEqual(await consent.count(), 0)
    })
    assert.deepStrictEqual(without(problems), [])
  })

  it.scoped.skipIf(isSkipped)(
    "a discount below cost is confirmed first, and its warning stays until it is closed or the operator signs out",
    function* () {
      const { id } = yield* made()
      const { page, problems } = yield* openConsole({ hash: `#/organizations/${id}` })
      yield* Effect.promise(async () => {
        await button(page, "Edit").waitFor()
        await page.clock.install()
        const dialog = page.getByRole("dialog")
        const discount = dialog.getByLabel(inputLabel("organization", "discount_percent"), { exact: true })
        const sell = async (percent: string) => {
          await button(page, "Edit").click()
          await discount.fill(percent)
          await dialog.getByRole("alert").getByText(`At a discount of ${percent} %`).waitFor()
          assert.match(await dialog.getByRole("alert").innerText(), /prompt per 1M: \$[\d.]+, cost \$[\d.]+/)
          await dialog.locator("button.primary").click()
          await dialog.locator("input:invalid").waitFor()
          await dialog.getByLabel("Sell below cost").check()
          await dialog.locator("button.primary").click()
        }
        await button(page, "Edit").click()
        await discount.fill("60")
        await dialog.getByLabel("Sell below cost").waitFor()
        assert.deepStrictEqual(await findBarriers(page), [])
        await discount.fill("-5")
        await dialog.getByLabel("Sell below cost").waitFor({ state: "detached" })
        await button(dialog, "Cancel").click()
        await sell("60")
        const warning = page.getByRole("status").filter({ hasText: "At a discount of 60 %" })
        await warning.first().waitFor()
        await page.clock.runFor(60_000)
        assert.isTrue(await warning.first().isVisible())
        while ((await warning.count()) > 0) await warning.getByRole("button", { name: "Close" }).first().click()
        await sell("61")
        await page.getByText("At a discount of 61 %").waitFor()
        await button(page, "Sign out").click()
        await page.getByLabel("Token").waitFor()
        assert.strictEqual(await page.getByText("At a discount of 61 %").count(), 0)
      })
      assert.deepStrictEqual(without(problems), [])
    }
  )

  it.scoped.skipIf(isSkipped)("one is deleted only after its name is typed", function* () {
    const { id, name } = yield* made()
    const { page, problems } = yield* openConsole({ hash: `#/organizations/${id}` })
    yield* Effect.promise(async () => {
      await button(page, "Delete").click()
      const dialog = page.getByRole("dialog")
      await dialog.getByRole("textbox").fill(`${name}x`)
      await dialog.getByRole("button", { name: "Delete" }).click()
      assert.isTrue(await dialog.isVisible())
      await dialog.getByRole("textbox").fill(name)
      await dialog.getByRole("button", { name: "Delete" }).click()
      await page.getByText("deleted", { exact: true }).waitFor()
      assert.strictEqual(await button(page, "Top up").count(), 0)
      assert.strictEqual(await button(page, "Create key").count(), 0)
      assert.strictEqual(await button(page, "Add endpoint").count(), 0)
    })
    assert.deepStrictEqual(without(problems), [])
  })

  it.scoped.skipIf(isSkipped)("a reader sees everything and no button that changes it", function* () {
    const { id, name } = yield* made()
    const { page, problems } = yield* openConsole({ hash: `#/organizations/${id}`, role: "read" })
    yield* Effect.promise(async () => {
      await heading(page, name).waitFor()
      await page.getByText("No active keys.").waitFor()
      assert.deepStrictEqual(await page.locator("main button").allInnerTexts(), [])
    })
    assert.deepStrictEqual(without(problems), [])
  })

  it.scoped.skipIf(isSkipped)("hostile names are text, accessible, and fit at 360 px", function* () {
    const evil = `<img src=x onerror="document.title='owned'"> שלום ${randomUUID()} `
    const { id, name } = yield* made(evil + "x".repeat(100 - evil.length))
    const { page, problems } = yield* openConsole({
      hash: "#/organizations",
      ...narrow
    })
    yield* Effect.promise(async () => {
      await page.getByRole("link", { name: "<img src=x" }).first().click()
      await heading(page, name).waitFor()
      await page.getByText("No active keys.").waitFor()
      assert.strictEqual(await page.title(), `${name} · Gateway`)
      assert.strictEqual(await page.locator("main img").count(), 0)
      assert.strictEqual(await overflow(page), 0)
      assert.deepStrictEqual(await findBarriers(page), [])
      await button(page, "Delete").click()
      assert.strictEqual(await overflow(page), 0)
      await page.getByRole("dialog").getByRole("textbox").fill(id)
      await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click()
      await page.getByText("deleted", { exact: true }).waitFor()
    })
    assert.deepStrictEqual(without(problems), [])
  })

  it.scoped.skipIf(isSkipped)(
    "a change in one tab shows in the other, and signing out in one ends the other",
    function* () {
      const { id, name } = yield* made()
      const { page, problems } = yield* openConsole({ hash: `#/organizations/${id}` })
      yield* Effect.promise(async () => {
        await heading(page, name).waitFor()
        const other = await page.context().newPage()
        await other.goto(page.url())
        await heading(other, name).waitFor()
        await button(other, "Suspend").click()
        await other.getByRole("dialog").getByRole("button", { name: "Suspend" }).click()
        await page.getByText("suspended", { exact: true }).waitFor()
        await button(other, "Sign out").click()
        await page.reload()
        await page.getByLabel("Token").waitFor()
      })
      assert.deepStrictEqual(without(problems, 401), [])
    }
  )
})
