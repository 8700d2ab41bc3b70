import { Effect } from "effect"
import type { Page } from "playwright-core"
import { isSkipped } from "../harness/client/Browser.ts"
import * as Served from "../harness/gateway/ServedGateway.ts"
import { assert, withLayer } from "../harness/It.ts"
import { findBarriers, openConsole } from "./ConsolePage.ts"
import { dashboardAnswers } from "./DashboardAnswers.ts"

const gateway = Served.layer(Effect.succeed({ env: { SANDBOX: "true" } }))

const focused = (page: Page) => page.evaluate<string>("document.activeElement.textContent")
const background = (page: Page) => page.evaluate<string>("getComputedStyle(document.body).backgroundColor")

const light = "rgb(246, 247, 248)"
const dark = "rgb(16, 20, 23)"

withLayer(gateway)("the layout", (it) => {
  it.scoped.skipIf(isSkipped)("works with the keyboard only", function* () {
    const { page, problems, url } = yield* openConsole({ answers: dashboardAnswers(), hash: "#/nowhere" })
    yield* Effect.promise(async () => {
      await page.getByText("This page does not exist.").waitFor()
      await page.keyboard.press("?")
      const dialog = page.getByRole("dialog", { name: "Keyboard shortcuts" })
      await dialog.waitFor()
      assert.deepStrictEqual(await findBarriers(page), [])
      await page.keyboard.press("Escape")
      await page.locator("dialog").waitFor({ state: "detached" })
      await page.keyboard.press("g")
      await page.keyboard.press("n")
      await page.getByRole("heading", { name: "Dashboard", level: 1 }).waitFor()
      await page.waitForURL(`${url}/console#/`)
      assert.strictEqual(await focused(page), "Dashboard")
      await page.reload()
      await page.getByRole("heading", { name: "Dashboard", level: 1 }).waitFor()
      await page.keyboard.press("Tab")
      assert.strictEqual(await focused(page), "Skip to content")
      await page.keyboard.press("Enter")
      assert.strictEqual(await page.evaluate("document.activeElement.localName"), "main")
      await page.waitForURL(`${url}/console#/`)
    })
    assert.deepStrictEqual(problems, [])
  })

  it.scoped.skipIf(isSkipped)("marks the current view in the navigation at every width", function* () {
    const viewport = { height: 740, width: 360 }
    const { page } = yield* openConsole({ answers: dashboardAnswers(), hash: "#/settings", viewport })
    yield* Effect.promise(async () => {
      const current = page.getByRole("navigation").locator('[aria-current="page"]')
      const menu = page.getByRole("button", { name: "Menu", exact: true })
      assert.isFalse(await current.isVisible())
      // Axe would measure a colour in transition.
      await page.emulateMedia({ reducedMotion: "reduce" })
      await menu.click()
      assert.deepStrictEqual(await current.allInnerTexts(), ["Settings"])
      const { x = 0, width = 0 } = (await current.boundingBox()) ?? {}
      assert.isAtLeast(x, 0)
      assert.isAtMost(x + width, viewport.width)
      assert.deepStrictEqual(await findBarriers(page), [])
      await page.keyboard.press("Escape")
      assert.isFalse(await current.isVisible())
      assert.strictEqual(await focused(page), "Menu")
      await page.keyboard.press("Enter")
      await page.getByRole("navigation").getByRole("link", { name: "Dashboard" }).click()
      await page.getByRole("heading", { name: "Dashboard", level: 1 }).waitFor()
      await page.locator('button.menu[aria-expanded="false"]').waitFor()
    })
  })

  it.scoped.skipIf(isSkipped)("scrolls each new view to the top", function* () {
    const { page } = yield* openConsole({ answers: dashboardAnswers(), viewport: { height: 400, width: 1000 } })
    yield* Effect.promise(async () => {
      await page.getByText("No route is paused or disabled.").scrollIntoViewIfNeeded()
      assert.isAbove(await page.evaluate<number>("scrollY"), 0)
      await page.evaluate("location.hash = '#/nowhere'")
      await page.getByText("This page does not exist.").waitFor()
      await page.evaluate("location.hash = '#/'")
      await page.getByText("No route is paused or disabled.").waitFor()
      assert.strictEqual(await page.evaluate("scrollY"), 0)
    })
  })

  it.scoped.skipIf(isSkipped)("follows the system's theme until another is chosen, and remembers it", function* () {
    const { page, problems } = yield* openConsole({ answers: dashboardAnswers(), colorScheme: "dark" })
    yield* Effect.promise(async () => {
      assert.strictEqual(await background(page), dark)
      await page.emulateMedia({ colorScheme: "light" })
      assert.strictEqual(await background(page), light)
      await page.getByRole("radio", { name: "dark" }).check()
      assert.strictEqual(await background(page), dark)
      await page.reload()
      assert.isTrue(await page.getByRole("radio", { name: "dark" }).isChecked())
      assert.strictEqual(await background(page), dark)
      await page.getByRole("radio", { name: "auto" }).check()
      assert.strictEqual(await background(page), light)
    })
    assert.deepStrictEqual(problems, [])
  })
})
