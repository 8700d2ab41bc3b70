import { randomUUID } from "node:crypto"
import { SqlClient } from "@effect/sql"
import { Effect } from "effect"
import { NanoUsd } from "../../src/domain/Money.ts"
import { Organizations } from "../../src/services/admin/Organizations.ts"
import { LedgerAdmin } from "../../src/services/ledger/LedgerAdmin.ts"
import { isSkipped } from "../harness/client/Browser.ts"
import * as Served from "../harness/gateway/ServedGateway.ts"
import { assert, withLayer } from "../harness/It.ts"
import { findBarriers, openConsole, overflow } from "./ConsolePage.ts"
import { addFilter, button, filterOf, heading, narrow, without } from "./ConsoleParts.ts"

const gateway = Served.layer(Effect.succeed({ env: { SANDBOX: "true" } }))

const usd = NanoUsd(1_000_000_000n)

const made = Effect.fnUntraced(function* () {
  const { create } = yield* Organizations
  return yield* Effect.orDie(create({ name: `made ${randomUUID()}`, credits: usd }))
})

withLayer(gateway)("the ledger in the console", (it) => {
  it.scoped.skipIf(isSkipped)("shows the entries of its address, and exports the same as CSV", function* () {
    const { adjust, topUp } = yield* LedgerAdmin
    const { id, name } = yield* made()
    const other = yield* made()
    const note = `<img src=x onerror="document.title='owned'">\u202E${"x".repeat(300)}`
    yield* Effect.orDie(topUp({ org: id, amount: NanoUsd(1n), ref: `INV ${id}`, note }))
    yield* Effect.orDie(adjust({ org: id, amount: NanoUsd(-2n), note: "too much", force: false }))
    const { page, problems, url } = yield* openConsole({ hash: "#/ledger" })
    const entries = page.getByRole("region", { name: "Entries" }).locator("tbody tr")
    yield* Effect.promise(async () => {
      await page.getByRole("link", { name: other.name }).first().waitFor()
      await (await addFilter(page, "Organization")).fill(name)
      await page.getByRole("link", { name: other.name }).first().waitFor({ state: "detached" })
      await page.getByText("3 total").waitFor()
      await (await addFilter(page, "Kind")).selectOption("adjustment")
      await page.getByText("1 total").waitFor()
      assert.include(await entries.first().innerText(), "−$0.000000002")
      await page.reload()
      await page.getByText("1 total").waitFor()
      await filterOf(page, "Kind").selectOption("")
      await page.getByText("3 total").waitFor()
      const address = await page.getByRole("link", { name: "CSV" }).getAttribute("href")
      const csv = await (await page.request.get(`${url}/${address}`)).text()
      assert.strictEqual(csv.trim().split("\n").length, 4)
      await page.setViewportSize(narrow.viewport)
      await page.getByText("<img src=x").first().click()
      assert.strictEqual(await page.locator("main img").count(), 0)
      assert.strictEqual(await overflow(page), 0)
      assert.deepStrictEqual(await findBarriers(page), [])
      await page.getByRole("link", { name }).first().click()
      await heading(page, name).waitFor()
    })
    assert.deepStrictEqual(without(problems), [])
  })

  it.scoped.skipIf(isSkipped)("checks each invariant and shows the rows that violate it", function* () {
    const sql = yield* SqlClient.SqlClient
    const { id } = yield* made()
    const { page, problems } = yield* openConsole({ hash: "#/ledger", role: "read" })
    const proofs = page.locator(".proofs li")
    yield* Effect.promise(async () => {
      await button(page, "Verify").click()
      await page.getByText(/^verified All \d+ invariants hold for/).waitFor()
      const names = await proofs.allInnerTexts()
      assert.isAbove(names.length, 15)
      for (const name of names) assert.match(name, /^passed/)
      assert.deepStrictEqual(await findBarriers(page), [])
    })
    yield* sql`UPDATE organizations SET balance = balance + 1 WHERE id = ${id}`
    yield* Effect.promise(async () => {
      await button(page, "Verify again").click()
      await page.getByText(/^The check failed: 1 of \d+ invariants is/).waitFor()
      const broken = page.getByRole("region", { name: "a balance is the sum of the organization's entries" })
      assert.include(await broken.last().innerText(), id)
      assert.include(await proofs.first().innerText(), "1 violation")
    })
    yield* sql`UPDATE organizations SET balance = balance - 1 WHERE id = ${id}`
    assert.deepStrictEqual(without(problems), [])
  })

  it.scoped.skipIf(isSkipped)("reports no result if the check is interrupted or another one runs", function* () {
    const { page, problems } = yield* openConsole({ hash: "#/ledger" })
    yield* Effect.promise(async () => {
      const line = {
        invariant: "a balance is the sum of the organization's entries",
        violations: [],
        count: 0,
        ms: 1
      }
      await page.route("**/ledger/verify", (route) => route.fulfill({ status: 200, body: `${JSON.stringify(line)}\n` }))
      await button(page, "Verify").click()
      await page.getByText("The check was interrupted and is incomplete. Verify again.").waitFor()
      await page.getByText("not checked").first().waitFor()
      const error = { message: "Wait.", type: "invalid_request_error", param: null, code: "conflict" }
      await page.route("**/ledger/verify", (route) => route.fulfill({ status: 409, json: { error } }))
      await button(page, "Verify again").click()
      await page.getByRole("alert").getByText("Wait.").waitFor()
    })
    assert.deepStrictEqual(without(problems, 409), [])
  })
})
