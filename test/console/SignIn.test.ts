import { assert, layer as withLayer } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { Operators } from "../../src/services/admin/Operators.ts"
import { hire } from "../harness/client/AdminClient.ts"
import { isSkipped, openPage } from "../harness/client/Browser.ts"
import { answerWith, findBarriers, openConsole } from "../harness/client/ConsolePage.ts"
import * as Served from "../harness/gateway/ServedGateway.ts"
import { nowAnswers } from "./NowAnswers.ts"

const gateway = Served.layer(Effect.succeed({ env: { SANDBOX: "true" } }))

/** The browser itself writes each refusal into its console. */
const without401 = (problems: ReadonlyArray<string>) => problems.filter((text) => !text.includes("status of 401"))

const stored = "JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie])"

const opened = Effect.fnUntraced(function* (hash: string) {
  const { url } = yield* Served.ServedGateway
  const { page, problems } = yield* openPage([url])
  yield* Effect.promise(async () => {
    await answerWith(page, nowAnswers())
    await page.goto(`${url}/console${hash}`)
  })
  return { page, problems, url }
})

withLayer(gateway, { excludeTestServices: true })("signing in to the console", (it) => {
  it.scoped.skipIf(isSkipped)("takes an operator's token, keeps the view, and stores no secret", () =>
    Effect.gen(function* () {
      const { name, token } = yield* hire("read")
      const { page, problems, url } = yield* opened("#/?x=1")
      yield* Effect.promise(async () => {
        const field = page.getByLabel("Operator's token")
        await field.fill("ggo_wrong")
        await field.press("Enter")
        assert.strictEqual(await page.getByRole("alert").innerText(), "The operator's token is not valid.")
        assert.deepStrictEqual(await findBarriers(page), [])
        await field.fill(` ${token}\n`)
        await page.getByRole("button", { name: "Sign in" }).click()
        await page.getByRole("heading", { name: "Now", level: 1 }).waitFor()
        assert.strictEqual(page.url(), `${url}/console#/?x=1`)
        assert.include(await page.locator(".operator").innerText(), name)
        assert.notInclude(await page.evaluate<string>(stored), token)
        assert.notInclude(await page.content(), token)
        await page.reload()
        await page.getByRole("heading", { name: "Now", level: 1 }).waitFor()
      })
      assert.deepStrictEqual(without401(problems), [])
    })
  )

  it.scoped.skipIf(isSkipped)("takes a link once, and removes it from the address and the history", () =>
    Effect.gen(function* () {
      const operators = yield* Operators
      const { id } = yield* hire("read")
      const link = Redacted.value(yield* operators.link(id))
      const { page, problems, url } = yield* opened(`#link=${link}`)
      yield* Effect.promise(async () => {
        await page.getByRole("heading", { name: "Now", level: 1 }).waitFor()
        assert.strictEqual(page.url(), `${url}/console#/`)
        assert.strictEqual(await page.evaluate("history.length"), 2)
      })
      const again = yield* opened(`#link=${link}`)
      yield* Effect.promise(async () => {
        const alert = again.page.getByRole("alert")
        assert.strictEqual(await alert.innerText(), "The link was used before, or has expired.")
        assert.notInclude(again.page.url(), link)
      })
      assert.deepStrictEqual([...problems, ...without401(again.problems)], [])
    })
  )

  it.scoped.skipIf(isSkipped)("ends when the operator signs out", () =>
    Effect.gen(function* () {
      const { page, problems, url } = yield* openConsole({ answers: nowAnswers() })
      yield* Effect.promise(async () => {
        await page.getByRole("button", { name: "Sign out" }).click()
        await page.getByLabel("Operator's token").waitFor()
        assert.strictEqual((await page.request.get(`${url}/admin/v1/session`)).status(), 401)
      })
      assert.deepStrictEqual(problems, [])
    })
  )

  it.scoped.skipIf(isSkipped)("is asked for again once the operator was revoked, and leads back to the view", () =>
    Effect.gen(function* () {
      const operators = yield* Operators
      const { token } = yield* hire("read")
      const { operator, page, problems, url } = yield* openConsole({ answers: nowAnswers() })
      yield* operators.revoke(operator.id)
      yield* Effect.promise(async () => {
        await page.evaluate("location.hash = '#/webhooks?state=failed'")
        await page.getByLabel("Operator's token").fill(token)
        await page.getByRole("button", { name: "Sign in" }).click()
        await page.getByRole("heading", { name: "Webhooks", level: 1 }).waitFor()
        assert.strictEqual(page.url(), `${url}/console#/webhooks?state=failed`)
        await page.getByText("No delivery matches.").waitFor()
      })
      assert.deepStrictEqual(
        without401(problems).filter((text) => !text.endsWith("net::ERR_ABORTED")),
        []
      )
    })
  )
})
