import { randomUUID } from "node:crypto"
import { Effect } from "effect"
import type { Page } from "playwright-core"
import { NanoUsd } from "../../src/domain/Money.ts"
import { Organizations } from "../../src/services/admin/Organizations.ts"
import { LedgerAdmin } from "../../src/services/ledger/LedgerAdmin.ts"
import { isSkipped } from "../harness/client/Browser.ts"
import { bearer, callAt, soon, talk } from "../harness/client/HttpCalls.ts"
import * as Served from "../harness/gateway/ServedGateway.ts"
import { assert, withLayer } from "../harness/It.ts"
import { findBarriers, openConsole, overflow, waitForValue } from "./ConsolePage.ts"
import { button, change, heading, inputLabel, loseAnswers, narrow, without } from "./ConsoleParts.ts"

const gateway = Served.layer(Effect.succeed({ env: { SANDBOX: "true" } }))

const usd = 1_000_000_000n

const made = Effect.fnUntraced(function* (credits: bigint) {
  const { create } = yield* Organizations
  return yield* Effect.orDie(create({ name: `made ${randomUUID()}`, credits: NanoUsd(credits) }))
})

const row = (page: Page, name: string) => page.getByRole("region", { name: "Keys" }).getByRole("row", { name })

/** Returns the secret in the dialog and closes the dialog. */
const copySecret = async (page: Page): Promise<string> => {
  const dialog = page.getByRole("dialog", { name: "Your new key" })
  const secret = await dialog.getByText(/^ggw_/).innerText()
  await button(dialog, "Done").click()
  await page.locator("dialog").waitFor({ state: "detached" })
  return secret
}

withLayer(gateway)("keys and money in the console", (it) => {
  it.scoped.skipIf(isSkipped)("a customer is created, used, capped, suspended, resumed and revoked", function* () {
    const name = `acme ${randomUUID()}`
    const { page, problems, url } = yield* openConsole({ hash: "#/organizations" })
    const ask = (secret: string) =>
      Effect.map(
        callAt(`${url}/v1/chat/completions`, { body: talk("gpt-5.2"), headers: bearer(secret) }),
        ({ status }) => status
      )
    /** A change of a key takes effect on every instance within a second. */
    const become = (secret: string, status: number) =>
      soon(Effect.map(ask(secret), (answered) => assert.strictEqual(answered, status)))
    const act = (what: () => Promise<unknown>) => Effect.promise(what)
    yield* act(async () => {
      await change(page, "Create organization", { Name: name })
      await heading(page, name).waitFor()
      await change(page, "Top up", { "Amount (USD)": "5", Reference: `INV ${name}` })
      await page.getByText(`Added $5.00 to ${name}.`).waitFor()
      await page.getByRole("region", { name: "Entries" }).getByText("top-up").waitFor()
      await change(page, "Create key", { Name: "backend" })
    })
    const secret = yield* Effect.promise(() => copySecret(page))
    assert.match(secret, /^ggw_/)
    assert.strictEqual(yield* ask(secret), 200)
    yield* act(async () => {
      await page.getByRole("region", { name: "Entries" }).getByText("charge", { exact: true }).waitFor()
      await row(page, "backend")
        .getByText(/^\$0\.00\d+$/)
        .first()
        .waitFor()
      assert.notInclude(await page.content(), secret)
      await change(page, "Edit backend", { [inputLabel("key", "cap_usd")]: "0.000000001" })
      await page.getByText("cap reached").waitFor()
      assert.deepStrictEqual(await findBarriers(page), [])
    })
    yield* become(secret, 402)
    yield* act(async () => {
      await change(page, "Edit backend", { [inputLabel("key", "cap_usd")]: "" })
      await row(page, "backend").getByText("active").waitFor()
    })
    yield* become(secret, 200)
    yield* act(async () => {
      await change(page, "Edit", { [inputLabel("organization", "cap_usd")]: "0.000000001" })
      await page.getByText("cap reached", { exact: true }).waitFor()
      await page.getByText("Spending cap used").waitFor()
      await page.getByText("resets in").waitFor()
      assert.deepStrictEqual(await findBarriers(page), [])
    })
    yield* become(secret, 402)
    yield* act(async () => {
      await change(page, "Edit", { [inputLabel("organization", "cap_usd")]: "" })
      await page.getByText("active", { exact: true }).waitFor()
      await change(page, "Suspend")
      await page.getByText("suspended", { exact: true }).waitFor()
    })
    yield* become(secret, 401)
    yield* act(async () => {
      await change(page, "Resume")
      await page.getByText("active", { exact: true }).waitFor()
    })
    yield* become(secret, 200)
    yield* act(() => change(page, "Reissue backend"))
    const other = yield* Effect.promise(() => copySecret(page))
    yield* become(secret, 401)
    yield* become(other, 200)
    yield* act(async () => {
      await change(page, "Revoke backend")
      await page.getByText("The key backend is revoked.").waitFor()
      await page.getByLabel("Show inactive keys").check()
      await row(page, "backend").getByText("revoked").waitFor()
      assert.strictEqual(await button(page, "Revoke backend").count(), 0)
    })
    yield* become(other, 401)
    assert.deepStrictEqual(without(problems), [])
  })

  it.scoped.skipIf(isSkipped)(
    "a key is limited to models, warns of an unknown one, and is reissued with a grace period",
    function* () {
      const { id } = yield* made(5n * usd)
      const { page, problems, url } = yield* openConsole({ hash: `#/organizations/${id}` })
      const become = (secret: string, model: string, status: number) =>
        soon(
          Effect.map(callAt(`${url}/v1/chat/completions`, { body: talk(model), headers: bearer(secret) }), (answer) =>
            assert.strictEqual(answer.status, status)
          )
        )
      yield* Effect.promise(async () => {
        await change(page, "Create key", { Name: "team", Models: "gpt-5.2, claud-*" })
        await page
          .getByRole("dialog", { name: "Your new key" })
          .getByText("No model of the catalog matches claud-*.")
          .waitFor()
      })
      const secret = yield* Effect.promise(() => copySecret(page))
      yield* become(secret, "gpt-5.2", 200)
      yield* become(secret, "gpt-5.4", 403)
      yield* Effect.promise(async () => {
        await row(page, "team").getByText("gpt-5.2, claud-*").waitFor()
        await button(page, "Edit team").click()
        await waitForValue(page.getByRole("dialog").getByLabel("Models", { exact: true }), "gpt-5.2, claud-*")
        await page.getByRole("dialog").getByLabel("Models", { exact: true }).fill("gpt 5")
        await page.getByRole("dialog").locator("button.primary").click()
        await page.getByText("`models` must be a list of model ids or patterns").waitFor()
        await page.getByRole("dialog").getByLabel("Models", { exact: true }).fill("gpt-*,gpd-*")
        await page.getByRole("dialog").locator("button.primary").click()
        await page.getByText("No model of the catalog matches gpd-*.").waitFor()
      })
      yield* become(secret, "gpt-5.4", 200)
      const reissue = (grace: string) =>
        Effect.promise(async () => {
          await button(page, "Reissue team").click()
          await page.getByRole("dialog").getByLabel("Current secret", { exact: true }).selectOption(grace)
          await page.getByRole("dialog").locator("button.primary").click()
          return copySecret(page)
        })
      const second = yield* reissue("Works for 24 hours")
      yield* become(second, "gpt-5.2", 200)
      yield* become(secret, "gpt-5.2", 200)
      yield* Effect.promise(async () => {
        await row(page, "team").getByText("old secret valid until").waitFor()
        assert.deepStrictEqual(await findBarriers(page), [])
      })
      yield* reissue("Stops working immediately")
      yield* become(second, "gpt-5.2", 401)
      yield* become(secret, "gpt-5.2", 401)
      yield* Effect.promise(() => row(page, "team").getByText("old secret valid until").waitFor({ state: "detached" }))
      assert.deepStrictEqual(without(problems, 400), [])
    }
  )

  it.scoped.skipIf(isSkipped)("the models of a key are suggested, also after a pattern", function* () {
    const { id } = yield* made(5n * usd)
    const { page, problems } = yield* openConsole({ hash: `#/organizations/${id}` })
    yield* Effect.promise(async () => {
      await button(page, "Create key").click()
      const models = page.getByRole("combobox", { name: "Models", exact: true })
      const suggested = (value: string) =>
        page.locator(`dialog datalist option[value="${value}"]`).waitFor({ state: "attached" })
      const list = await page.locator("dialog datalist").getAttribute("id")
      assert.strictEqual(await models.getAttribute("list"), list)
      await suggested("gpt-5.2")
      await models.fill("claude-*, gpt")
      await suggested("claude-*, gpt-5.2")
      await models.fill("claude-*,gpt-5.2")
      await suggested("claude-*,gpt-5.2, gpt-5.4")
      assert.strictEqual(await page.locator('dialog datalist option[value$="gpt-5.2"]').count(), 0)
      assert.deepStrictEqual(await findBarriers(page), [])
      await page.getByRole("dialog").locator("button.primary").click()
      await copySecret(page)
      await button(page, "Edit Unnamed")
        .or(page.getByRole("button", { name: /^Edit key_/ }))
        .click()
      await waitForValue(models, "claude-*, gpt-5.2")
      await suggested("claude-*, gpt-5.2, gpt-5.4")
    })
    assert.deepStrictEqual(without(problems), [])
  })

  it.scoped.skipIf(isSkipped)("a new key is not used by the dialog that shows its first request", function* () {
    const { id } = yield* made(5n * usd)
    const { page, problems } = yield* openConsole({ hash: `#/organizations/${id}` })
    const calls: Array<string> = []
    page.on("request", (request) => {
      const { pathname } = new URL(request.url())
      if (pathname.startsWith("/v1/")) calls.push(pathname)
    })
    yield* Effect.promise(async () => {
      const snippet = page.getByRole("dialog", { name: "Your new key" }).locator(".snippets pre")
      await change(page, "Create key", { Name: "first", Models: "gpt-5.4*" })
      await snippet.getByText('"model": "gpt-5.4').waitFor()
      await copySecret(page)
      await change(page, "Reissue first")
      await snippet.getByText('"model": "gpt-5.4').waitFor()
      await copySecret(page)
      await button(page, "Create key").click()
      await page.getByLabel("Name", { exact: true }).fill("clips")
      for (const scope of ["chat", "images"])
        await page.getByRole("dialog").getByLabel(scope, { exact: true }).uncheck()
      await page.getByRole("dialog").locator("button.primary").click()
      await snippet.getByText("/v1/videos").first().waitFor()
      await page.getByText("If this model requires a reference image, add the field image.").waitFor()
      await copySecret(page)
      await change(page, "Create key", { Name: "useless", Models: "no-such-*" })
      await page.getByText("This key cannot call any available model.").waitFor()
      assert.strictEqual(await snippet.count(), 0)
      await copySecret(page)
      assert.deepStrictEqual(calls, [])
      const lastUsed = row(page, "first").locator('td[data-label="Last used"]')
      assert.strictEqual(await lastUsed.innerText(), "–")
    })
    assert.deepStrictEqual(without(problems), [])
  })

  it.scoped.skipIf(isSkipped)("a double click on a top-up adds one entry, even if the response is lost", function* () {
    const { id } = yield* made(0n)
    const { page, problems } = yield* openConsole({ hash: `#/organizations/${id}` })
    yield* Effect.promise(async () => {
      const keys = await loseAnswers(page, "**/admin/v1/credits", 1)
      await button(page, "Top up").click()
      await page.getByLabel("Amount (USD)").fill("0.000000001")
      await page.getByRole("dialog").locator("button.primary").dblclick()
      await page.getByText("Added $0.000000001 to").waitFor()
      await page.getByRole("region", { name: "Entries" }).getByText("top-up").waitFor()
      assert.isAtLeast(keys.length, 2)
    })
    const { entries } = yield* LedgerAdmin
    assert.deepStrictEqual(
      (yield* entries(id, { limit: 10 })).map(({ amount_usd }) => amount_usd),
      [1n]
    )
    assert.deepStrictEqual(
      problems.filter((text) => !text.includes("ERR_CONNECTION_RESET")),
      []
    )
  })

  it.scoped.skipIf(isSkipped)("an adjustment below the available balance needs an owner's confirmation", function* () {
    const { id } = yield* made(2n * usd)
    const { page, problems } = yield* openConsole({ hash: `#/organizations/${id}` })
    yield* Effect.promise(async () => {
      await change(page, "Adjust", { "Amount (USD)": "-2.5", Note: "A <b>chargeback</b>" })
      const dialog = page.getByRole("dialog")
      assert.include(await dialog.getByRole("alert").innerText(), "Only 2 USD is available")
      await dialog.getByLabel("Allow a negative balance").check()
      await dialog.locator("button.primary").click()
      await page.locator("dialog").waitFor({ state: "detached" })
      await page.getByText("A <b>chargeback</b>").waitFor()
      assert.strictEqual(
        await page
          .locator(".stat", { hasText: /^Balance(?! lasts)/ })
          .locator(".figure")
          .innerText(),
        "−$0.50"
      )
    })
    const reader = yield* openConsole({ hash: `#/organizations/${id}`, role: "write" })
    yield* Effect.promise(async () => {
      await button(reader.page, "Adjust").click()
      await reader.page.getByRole("dialog").waitFor()
      assert.strictEqual(await reader.page.getByLabel("Even if").count(), 0)
      assert.strictEqual(await button(reader.page, "Delete").count(), 0)
    })
    assert.deepStrictEqual(without(problems, 409), [])
  })

  it.scoped.skipIf(isSkipped)("hostile names and notes are text and fit at 360 px", function* () {
    const { id } = yield* made(usd)
    const evil = `<img src=x onerror="document.title='owned'">\u202E${"x".repeat(150)}`
    const { page, problems } = yield* openConsole({ hash: `#/organizations/${id}`, ...narrow })
    yield* Effect.promise(async () => {
      await change(page, "Create key", { Name: evil })
      await copySecret(page)
      await change(page, "Top up", { "Amount (USD)": "1", Note: evil.repeat(5), Reference: evil })
      await page.getByRole("region", { name: "Entries" }).getByText("<img src=x").first().waitFor()
      await page.getByRole("region", { name: "Keys" }).getByText("<img src=x").first().waitFor()
      assert.strictEqual(await page.locator("main img").count(), 0)
      assert.notInclude(await page.title(), "owned")
      assert.strictEqual(await overflow(page), 0)
      assert.deepStrictEqual(await findBarriers(page), [])
    })
    assert.deepStrictEqual(without(problems), [])
  })
})
