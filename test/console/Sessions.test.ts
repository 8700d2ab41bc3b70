import { SqlClient } from "@effect/sql"
import { assert, layer as withLayer } from "@effect/vitest"
import { Effect } from "effect"
import { isSkipped } from "../harness/client/Browser.ts"
import { openConsole } from "../harness/client/ConsolePage.ts"
import { callAt } from "../harness/client/HttpCalls.ts"
import * as Served from "../harness/gateway/ServedGateway.ts"

const gateway = Served.layer(Effect.succeed({ env: { SANDBOX: "true" } }))

/** The browser itself writes each refusal into its console; a view that is left gives up what it asked for. */
const without401 = (problems: ReadonlyArray<string>) =>
  problems.filter((text) => !/status of 401|net::ERR_ABORTED/.test(text))

withLayer(gateway, { excludeTestServices: true })("a session of the console", (it) => {
  it.scoped.skipIf(isSkipped)("that has expired is opened anew in the view that was wanted", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { operator, page, problems, url } = yield* openConsole({ hash: "#/audit" })
      yield* sql`
        UPDATE operator_sessions SET expires_at = now() - interval '1 second' WHERE operator_id = ${operator.id}`
      yield* Effect.promise(async () => {
        await page.evaluate("location.hash = '#/webhooks?state=failed'")
        const field = page.getByLabel("Operator's token")
        await field.fill(operator.token)
        await field.press("Enter")
        await page.getByRole("heading", { name: "Webhooks", level: 1 }).waitFor()
        assert.strictEqual(page.url(), `${url}/console#/webhooks?state=failed`)
        assert.strictEqual(await page.getByRole("combobox", { name: "Deliveries" }).inputValue(), "failed")
      })
      assert.deepStrictEqual(without401(problems), [])
    })
  )

  it.scoped.skipIf(isSkipped)("that was stolen is worth nothing once its owner has signed out", () =>
    Effect.gen(function* () {
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
        await page.getByLabel("Operator's token").waitFor()
      })
      assert.strictEqual(yield* use, 401)
      assert.deepStrictEqual(without401(problems), [])
    })
  )

  it.scoped.skipIf(isSkipped)("cannot be used by the page of another site", () =>
    Effect.gen(function* () {
      const { page, url } = yield* openConsole({ hash: "#/audit" })
      const elsewhere = url.replace("127.0.0.1", "localhost")
      yield* Effect.promise(async () => {
        const created = `fetch(${JSON.stringify(`${url}/admin/v1/organizations`)}, {
          method: "POST", credentials: "include", mode: "no-cors", body: '{"name":"forged"}',
          headers: { "content-type": "text/plain", "idempotency-key": "1" }
        }).then(() => "sent", String)`
        // Pages of the gateway's own API reference allow no connections elsewhere; its liveness has no policy.
        await page.goto(`${elsewhere}/healthz`)
        assert.strictEqual(await page.evaluate(created), "sent")
        const listed = await page.request.get(`${url}/admin/v1/organizations?search=forged`)
        assert.deepInclude(await listed.json(), { data: [] })
      })
    })
  )

  it.scoped.skipIf(isSkipped)("is not sent under another name that leads to the gateway", () =>
    Effect.gen(function* () {
      const { page, problems, url } = yield* openConsole({ hash: "#/audit" })
      yield* Effect.promise(async () => {
        await page.goto(`${url.replace("127.0.0.1", "localhost")}/console#/audit`)
        await page.getByLabel("Operator's token").waitFor()
        assert.strictEqual(await page.evaluate("fetch('/admin/v1/audit').then(({ status }) => status)"), 401)
      })
      const foreign = problems.filter((text) => !text.startsWith("asked http://localhost:"))
      assert.deepStrictEqual(without401(foreign), [])
    })
  )
})
