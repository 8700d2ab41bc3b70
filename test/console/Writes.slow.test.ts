import { Effect } from "effect"
import type { Page } from "playwright-core"
import { openAccount } from "../harness/client/Account.ts"
import { adminAt, read } from "../harness/client/AdminClient.ts"
import { isSkipped } from "../harness/client/Browser.ts"
import * as Served from "../harness/gateway/ServedGateway.ts"
import { assert, withLayer } from "../harness/It.ts"
import { findBarriers, openConsole } from "./ConsolePage.ts"
import { loseAnswers } from "./ConsoleParts.ts"

const gateway = Served.layer(Effect.succeed({ env: { SANDBOX: "true", FETCH_ALLOW: "127.0.0.0/8" } }))

const hook = "http://127.0.0.1:9/hook"

/** The form for an endpoint of a new organization. */
const openForm = Effect.gen(function* () {
  const { org } = yield* openAccount({})
  const opened = yield* openConsole({
    hash: `#/webhooks?organization=${org}`,
    permissions: ["clipboard-read", "clipboard-write"]
  })
  const { operator, page, url } = opened
  const keys: Array<string> = []
  page.on("request", (request) => {
    if (request.method() === "POST") keys.push(request.headers()["idempotency-key"] ?? "")
  })
  yield* Effect.promise(() => page.getByRole("button", { name: "Add endpoint" }).click())
  const endpoints = Effect.map(adminAt(url, operator.token)(`/webhooks?organization=${org}`), (answer) => {
    const urls: ReadonlyArray<{ readonly url: string }> = read(answer).data
    return urls.map((one) => one.url)
  })
  return { ...opened, keys, endpoints, form: page.getByRole("dialog", { name: "Add endpoint" }) }
})

const focused = (page: Page) => page.evaluate<string>("document.activeElement.textContent")

withLayer(gateway)("a change in the console", (it) => {
  it.scoped.skipIf(isSkipped)("shows its secret once, copies it, and restores the focus", function* () {
    const { endpoints, form, keys, page, problems } = yield* openForm
    yield* Effect.promise(async () => {
      await form.getByLabel("URL").fill(hook)
      await page.keyboard.press("Enter")
      const dialog = page.getByRole("dialog", { name: "Signing secret" })
      const secret = await dialog.locator(".copy code").innerText()
      assert.match(secret, /^whsec_/)
      assert.deepStrictEqual(await findBarriers(page), [])
      await dialog.getByRole("button", { name: "Copy the secret" }).click()
      await dialog.getByText("Copied").waitFor()
      assert.strictEqual(await page.evaluate("navigator.clipboard.readText()"), secret)
      await page.keyboard.press("Escape")
      await page.locator("dialog").waitFor({ state: "detached" })
      assert.notInclude(await page.content(), secret)
      assert.strictEqual(await focused(page), "Add endpoint")
    })
    assert.deepStrictEqual(yield* endpoints, [hook])
    assert.lengthOf(keys, 1)
    assert.deepStrictEqual(problems, [])
  })

  it.scoped.skipIf(isSkipped)(
    "shows the error at its field, and sends a corrected form as a new request",
    function* () {
      const { endpoints, form, keys, page } = yield* openForm
      yield* Effect.promise(async () => {
        const field = form.getByLabel("URL")
        await field.fill("ftp://example.com")
        await page.keyboard.press("Enter")
        await form.getByRole("alert").waitFor()
        assert.strictEqual(await field.getAttribute("aria-invalid"), "true")
        const hint = (await field.getAttribute("aria-describedby")) ?? ""
        const told = await page.locator(`[id="${hint}"]`).innerText()
        assert.strictEqual(told, await form.getByRole("alert").innerText())
        assert.strictEqual(await form.getByLabel("Organization").getAttribute("aria-invalid"), "false")
        await field.fill(hook)
        await page.keyboard.press("Enter")
        await page.getByRole("dialog", { name: "Signing secret" }).waitFor()
      })
      assert.deepStrictEqual(yield* endpoints, [hook])
      assert.strictEqual(new Set(keys).size, 2)
    }
  )

  it.scoped.skipIf(isSkipped)("is applied once if its response is lost and it is retried", function* () {
    const { endpoints, form, keys, page } = yield* openForm
    yield* Effect.promise(async () => {
      await loseAnswers(page, "**/admin/v1/webhooks", 4)
      await form.getByLabel("URL").fill(hook)
      await page.keyboard.press("Enter")
      assert.strictEqual(await form.getByRole("alert").innerText(), "The gateway cannot be reached.")
      assert.lengthOf(keys, 3)
      await form.getByRole("button", { name: "Add", exact: true }).click()
      const dialog = page.getByRole("dialog", { name: "Signing secret" })
      await dialog.getByText("This secret was already shown once").waitFor()
    })
    assert.deepStrictEqual(yield* endpoints, [hook])
    assert.lengthOf(keys, 5)
    assert.strictEqual(new Set(keys).size, 1)
  })

  it.scoped.skipIf(isSkipped)("is not offered to readers", function* () {
    const { page, problems } = yield* openConsole({ role: "read", hash: "#/webhooks" })
    yield* Effect.promise(async () => {
      await page.getByText("No deliveries yet.").waitFor()
      const buttons = await page.locator("main button").allInnerTexts()
      assert.deepStrictEqual(buttons.toSorted(), ["+ Filter", "Refresh"])
    })
    assert.deepStrictEqual(problems, [])
  })
})
