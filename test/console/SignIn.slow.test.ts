import { SqlClient } from "@effect/sql"
import { Effect, Redacted } from "effect"
import { OrganizationScope } from "../../src/domain/OrganizationScope.ts"
import { Operators } from "../../src/services/admin/Operators.ts"
import { hire } from "../harness/client/AdminClient.ts"
import { isSkipped, openPage } from "../harness/client/Browser.ts"
import { callAt } from "../harness/client/HttpCalls.ts"
import * as Served from "../harness/gateway/ServedGateway.ts"
import { assert, describe, withLayer } from "../harness/It.ts"
import { answerWith, findBarriers, openConsole } from "./ConsolePage.ts"
import { without } from "./ConsoleParts.ts"
import { dashboardAnswers } from "./DashboardAnswers.ts"

const gateway = Served.layer(Effect.succeed({ env: { SANDBOX: "true" } }))

const stored = "JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie])"

const opened = Effect.fnUntraced(function* (hash: string) {
  const { url } = yield* Served.ServedGateway
  const { page, problems } = yield* openPage([url])
  yield* Effect.promise(async () => {
    await answerWith(page, dashboardAnswers())
    await page.goto(`${url}/console${hash}`)
  })
  return { page, problems, url }
})

withLayer(gateway)("the console", (it) => {
  describe("signing in to the console", () => {
    it.scoped.skipIf(isSkipped)("accepts a token, keeps the view, and stores no secret", function* () {
      const { name, token } = yield* hire("read")
      const { page, problems, url } = yield* opened("#/?x=1")
      yield* Effect.promise(async () => {
        const field = page.getByLabel("Token")
        await field.fill("ggo_wrong")
        await field.press("Enter")
        assert.strictEqual(await page.getByRole("alert").innerText(), "The operator's token is not valid.")
        assert.deepStrictEqual(await findBarriers(page), [])
        await field.fill(` ${token}\n`)
        await page.getByRole("button", { name: "Sign in" }).click()
        await page.getByRole("heading", { name: "Dashboard", level: 1 }).waitFor()
        await page.waitForURL(`${url}/console#/?x=1`)
        assert.include(await page.locator(".operator").innerText(), name)
        assert.notInclude(await page.evaluate<string>(stored), token)
        assert.notInclude(await page.content(), token)
        await page.reload()
        await page.getByRole("heading", { name: "Dashboard", level: 1 }).waitFor()
      })
      assert.deepStrictEqual(without(problems, 401), [])
    })

    it.scoped.skipIf(isSkipped)("accepts a link once, and removes it from the address and the history", function* () {
      const operators = yield* Operators
      const { id } = yield* hire("read")
      const link = Redacted.value(yield* operators.link(OrganizationScope.all, id))
      const { page, problems, url } = yield* opened(`#link=${link}`)
      yield* Effect.promise(async () => {
        await page.getByRole("heading", { name: "Dashboard", level: 1 }).waitFor()
        await page.waitForURL(`${url}/console#/`)
        assert.strictEqual(await page.evaluate("history.length"), 2)
      })
      const again = yield* opened(`#link=${link}`)
      yield* Effect.promise(async () => {
        const alert = again.page.getByRole("alert")
        assert.strictEqual(await alert.innerText(), "The link was already used or has expired.")
        assert.notInclude(again.page.url(), link)
      })
      assert.deepStrictEqual([...problems, ...without(again.problems, 401)], [])
    })

    it.scoped.skipIf(isSkipped)("ends when the operator signs out", function* () {
      const { page, problems, url } = yield* openConsole({ answers: dashboardAnswers() })
      yield* Effect.promise(async () => {
        await page.getByRole("button", { name: "Sign out" }).click()
        await page.getByLabel("Token").waitFor()
        assert.strictEqual((await page.request.get(`${url}/admin/v1/session`)).status(), 401)
      })
      assert.deepStrictEqual(problems, [])
    })

    it.scoped.skipIf(isSkipped)(
      "is required again after the operator is revoked, and returns to the view",
      function* () {
        const operators = yield* Operators
        const { token } = yield* hire("read")
        const { operator, page, problems, url } = yield* openConsole({ answers: dashboardAnswers() })
        yield* operators.revoke(OrganizationScope.all, operator.id)
        yield* Effect.promise(async () => {
          await page.evaluate("location.hash = '#/webhooks?state=failed'")
          await page.getByLabel("Token").fill(token)
          await page.getByRole("button", { name: "Sign in" }).click()
          await page.getByRole("heading", { name: "Webhooks", level: 1 }).waitFor()
          await page.waitForURL(`${url}/console#/webhooks?state=failed`)
          await page.getByText("No deliveries match.").waitFor()
        })
        assert.deepStrictEqual(without(problems, 401), [])
      }
    )
  })

  describe("a session of the console", () => {
    it.scoped.skipIf(isSkipped)("that has expired resumes in the same view after sign-in", function* () {
      const sql = yield* SqlClient.SqlClient
      const { operator, page, problems, url } = yield* openConsole({ hash: "#/audit" })
      yield* sql`
        UPDATE operator_sessions SET expires_at = now() - interval '1 second' WHERE operator_id = ${operator.id}`
      yield* Effect.promise(async () => {
        await page.evaluate("location.hash = '#/webhooks?state=failed'")
        const field = page.getByLabel("Token")
        await field.fill(operator.token)
        await field.press("Enter")
        await page.getByRole("heading", { name: "Webhooks", level: 1 }).waitFor()
        await page.waitForURL(`${url}/console#/webhooks?state=failed`)
        assert.strictEqual(await page.getByRole("combobox", { name: "Deliveries" }).inputValue(), "failed")
      })
      assert.deepStrictEqual(without(problems, 401), [])
    })

    it.scoped.skipIf(isSkipped)("that was stolen is invalid after its owner signs out", function* () {
      const { page, problems, url } = yield* openConsole({ hash: "#/audit" })
      const stolen = yield* Effect.promise(async () => {
        const cookies = await page.context().cookies(`${url}/admin/v1`)
        assert.deepInclude(cookies[0], {
          name: "gateway_session",
          httpOnly: true,
          sameSite: "Strict",
          path: "/admin/v1"
        })
        assert.notInclude(await page.evaluate<string>("document.cookie"), "gateway_session")
        return { cookie: cookies.map(({ name, value }) => `${name}=${value}`).join("; ") }
      })
      const use = Effect.map(callAt(`${url}/admin/v1/audit`, { headers: stolen }), ({ status }) => status)
      assert.strictEqual(yield* use, 200)
      yield* Effect.promise(async () => {
        await page.getByRole("button", { name: "Sign out" }).click()
        await page.getByLabel("Token").waitFor()
      })
      assert.strictEqual(yield* use, 401)
      assert.deepStrictEqual(without(problems, 401), [])
    })

    it.scoped.skipIf(isSkipped)("cannot be used by the page of another site", function* () {
      const { page, url } = yield* openConsole({ hash: "#/audit" })
      const elsewhere = url.replace("127.0.0.1", "localhost")
      yield* Effect.promise(async () => {
        const created = `fetch(${JSON.stringify(`${url}/admin/v1/organizations`)}, {
          method: "POST", credentials: "include", mode: "no-cors", body: '{"name":"forged"}',
          headers: { "content-type": "text/plain", "idempotency-key": "1" }
        }).then(() => "sent", String)`
        // The API reference has a policy against foreign connections. The liveness page has none.
        await page.goto(`${elsewhere}/healthz`)
        assert.strictEqual(await page.evaluate(created), "sent")
        const listed = await page.request.get(`${url}/admin/v1/organizations?search=forged`)
        assert.deepInclude(await listed.json(), { data: [] })
      })
    })

    it.scoped.skipIf(isSkipped)("is not sent to another host name of the gateway", function* () {
      const { page, problems, url } = yield* openConsole({ hash: "#/audit" })
      yield* Effect.promise(async () => {
        await page.goto(`${url.replace("127.0.0.1", "localhost")}/console#/audit`)
        await page.getByLabel("Token").waitFor()
        assert.strictEqual(await page.evaluate("fetch('/admin/v1/audit').then(({ status }) => status)"), 401)
      })
      const foreign = problems.filter((text) => !text.startsWith("asked http://localhost:"))
      assert.deepStrictEqual(without(foreign, 401), [])
    })
  })
})
