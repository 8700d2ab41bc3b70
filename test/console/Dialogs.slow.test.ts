import { appendFileSync, copyFileSync } from "node:fs"
import path from "node:path"
import { SqlClient } from "@effect/sql"
import { Effect } from "effect"
import { writeNotice } from "../../src/services/webhooks/WebhookEvents.ts"
import { adminAt, read } from "../harness/client/AdminClient.ts"
import { isSkipped } from "../harness/client/Browser.ts"
import { post } from "../harness/client/HttpCalls.ts"
import { eventually } from "../harness/database/Money.ts"
import * as Served from "../harness/gateway/ServedGateway.ts"
import { earlyAnswers } from "../harness/gateway/ShortTimings.ts"
import { assert, withLayer } from "../harness/It.ts"
import { temporaryDirectory } from "../harness/temporary.ts"
import * as WebhookReceiver from "../services/webhooks/WebhookReceiver.ts"
import { findBarriers, openConsole, overflow } from "./ConsolePage.ts"
import { auditOf, button, change, loseAnswers, narrow, tabTo, without } from "./ConsoleParts.ts"
import { script } from "./Traffic.ts"

let catalogFile = ""

const gateway = Served.layer(
  Effect.map(temporaryDirectory, (directory) => {
    catalogFile = path.join(directory, "catalog.yaml")
    copyFileSync("catalog.yaml", catalogFile)
    return {
      env: { SANDBOX: "true", FETCH_ALLOW: "127.0.0.0/8", CATALOG_FILE: catalogFile },
      timings: earlyAnswers
    }
  })
)

const video = post("/v1/videos")

/** The console of an operator, and the admin API to check results. */
const opened = (options: Parameters<typeof openConsole>[0]) =>
  Effect.map(openConsole({ role: "write", ...options }), (console) => ({
    ...console,
    ask: (address: string) =>
      Effect.map(adminAt(console.url, console.operator.token)(address), (answer) => read(answer))
  }))

withLayer(gateway)("a dialog of the console", (it) => {
  it.scoped.skipIf(isSkipped)(
    "disables a route with a note, enables and resets it, by the keyboard alone",
    function* () {
      const route = "gpt-5.2@sandbox"
      const { ask, operator, page, problems } = yield* opened({ hash: "#/models/gpt-5.2" })
      const state = Effect.map(ask("/routes"), ({ data }) => data.find(({ id }: { id: string }) => id === route))
      const press = async (name: string) => {
        await tabTo(page, `${name} ${route}`)
        await page.keyboard.press("Enter")
        await page.getByRole("dialog", { name: `${name} ${route}?` }).waitFor()
      }
      const rows = page.getByRole("region", { name: "Routes" }).locator("tbody tr")
      yield* Effect.promise(async () => {
        await rows.first().waitFor()
        await press("Disable")
        await page.keyboard.insertText("x".repeat(1001))
        await page.keyboard.press("Enter")
        const refusal = page.getByText("must be a non-blank string of at most 1000 characters")
        await refusal.waitFor()
        assert.strictEqual(await refusal.count(), 1)
        assert.strictEqual(await page.evaluate("document.activeElement.ariaInvalid"), "true")
        assert.deepStrictEqual(await findBarriers(page), [])
        await page.keyboard.press("Control+A")
        await page.keyboard.insertText(script)
        await page.keyboard.press("Enter")
        await page.getByText(`${route} is disabled.`).waitFor()
        await rows.getByText(script).waitFor()
        assert.strictEqual(await page.locator("main img").count(), 0)
      })
      const disabled = yield* state
      assert.strictEqual(disabled.note, script)
      assert.isNumber(disabled.disabled_at)
      yield* Effect.promise(async () => {
        await press("Enable")
        await tabTo(page, "Enable")
        await page.keyboard.press("Enter")
        await page.getByText(`${route} is enabled.`).waitFor()
        await button(page, `Disable ${route}`).waitFor()
        await press("Reset")
        await page.keyboard.press("Escape")
        await page.locator("dialog").waitFor({ state: "detached" })
        await page.keyboard.press("Enter")
        await tabTo(page, "Reset")
        await page.keyboard.press("Enter")
        await page.getByText(`${route} was reset.`).waitFor()
      })
      assert.deepInclude(yield* state, { note: null, disabled_at: null, circuit: "closed" })
      assert.deepStrictEqual(
        yield* auditOf(operator.name),
        ["reset", "enable", "disable"].map((action) => `console routes.${action} ${route}`)
      )
      assert.deepStrictEqual(without(problems, 400), [])
    }
  )

  it.scoped.skipIf(isSkipped)("reloads the catalog and shows the instance that rejected it", function* () {
    const { ask, operator, page, problems } = yield* opened({ hash: "#/models?search=gpt-5.2", ...narrow })
    const instance = Effect.map(ask("/instances"), ({ data: [first] }) => first)
    const before = yield* instance
    yield* Effect.promise(async () => {
      await change(page, "Reload catalog")
      await page.getByText("All instances reloaded the catalog.").waitFor()
    })
    const reloaded = yield* instance
    assert.isAbove(reloaded.generation, before.generation ?? 0)
    assert.isNull(reloaded.problem)
    yield* Effect.promise(async () => {
      appendFileSync(catalogFile, `\n${JSON.stringify(script)}: {}\n`)
      await change(page, "Reload catalog")
      await page.getByText("1 of 1 instance keeps its previous catalog.").waitFor()
      await page.getByRole("region", { name: "Instances" }).getByText("onerror").first().waitFor()
      assert.strictEqual(await page.locator("main img").count(), 0)
      assert.strictEqual(await overflow(page), 0)
      assert.deepStrictEqual(await findBarriers(page), [])
    })
    const refused = yield* instance
    assert.include(refused.problem, script)
    assert.strictEqual(refused.fingerprint, reloaded.fingerprint)
    const audited = "console catalog.reload catalog"
    assert.deepStrictEqual(yield* auditOf(operator.name), [audited, audited])
    assert.deepStrictEqual(without(problems), [])
  })

  it.scoped.skipIf(isSkipped)("polls a video, and cancels it once although the responses are lost", function* () {
    const customer = yield* Served.customer()
    const prompt = "[sandbox delay=600000] Waves"
    const body = { model: "veo-3.1-fast-generate-001", prompt, seconds: 4 }
    const { id } = read(yield* video(customer, body), 202)
    const { ask, operator, page, problems } = yield* opened({ hash: `#/videos/${id}` })
    yield* Effect.promise(async () => {
      await change(page, "Poll now")
      await page.getByText("An instance will process the video shortly.").waitFor()
    })
    assert.isTrue((yield* customer.funds).held > 0n)
    yield* Effect.promise(async () => {
      const keys = await loseAnswers(page, "**/cancel", 2)
      await change(page, "Cancel")
      await page.getByText("The video was cancelled and its hold released.").waitFor()
      await page.locator(".page-head").getByText("failed").waitFor()
      assert.strictEqual(await button(page, "Cancel").count(), 0)
      assert.lengthOf(keys, 3)
      assert.strictEqual(new Set(keys).size, 1)
    })
    assert.strictEqual((yield* customer.funds).held, 0n)
    assert.deepInclude(yield* ask(`/videos/${id}`), { status: "failed", step: "over", charge_usd: null })
    assert.deepStrictEqual(yield* auditOf(operator.name), [`console videos.cancel ${id}`, `console videos.retry ${id}`])
    assert.deepStrictEqual(
      without(problems).filter((text) => !text.includes("ERR_CONNECTION_RESET")),
      []
    )
  })

  it.scoped.skipIf(isSkipped)("adds an endpoint, enables it, replays an event, and removes it", function* () {
    const sql = yield* SqlClient.SqlClient
    const receiver = yield* WebhookReceiver.make(WebhookReceiver.ok)
    const { org } = yield* Served.customer()
    const { ask, operator, page, problems } = yield* opened({ hash: `#/organizations/${org}` })
    const hook = `${receiver.url}/<b>hook</b>`
    const endpoints = ask(`/webhooks?organization=${org}`)
    const secret = yield* Effect.promise(async () => {
      await change(page, "Add endpoint", { URL: hook })
      const dialog = page.getByRole("dialog", { name: "Signing secret" })
      const shown = await dialog.locator(".copy code").innerText()
      await button(dialog, "Done").click()
      await page.locator("dialog").waitFor({ state: "detached" })
      assert.notInclude(await page.content(), shown)
      return shown
    })
    const { data } = yield* endpoints
    assert.lengthOf(data, 1)
    const [{ id, url }] = data
    yield* sql`UPDATE webhook_endpoints SET disabled_at = now() WHERE id = ${id}`
    yield* Effect.promise(async () => {
      await page.getByRole("main").getByRole("link", { name: "Webhooks" }).click()
      await page.getByText("disabled after 410").waitFor()
      await change(page, `Enable ${url}`)
      await page.getByText("enabled", { exact: true }).waitFor()
    })
    assert.isNull((yield* endpoints).data[0].disabled_at)
    // One transaction, because the gateway would send the event immediately.
    const [{ event } = { event: "" }] = yield* sql.withTransaction(
      Effect.zipRight(
        writeNotice(sql, { org, type: "video.completed", url: undefined, data: { is: script } }),
        sql<{ event: string }>`
          UPDATE webhook_deliveries SET state = 'failed', failure = ${script}, next_at = NULL WHERE org_id = ${org}
          RETURNING event_id AS event`
      )
    )
    yield* Effect.promise(async () => {
      await button(page, "Refresh").click()
      await page.getByText(script).waitFor()
      await change(page, `Replay ${event}`)
      await page.getByText("The event will be sent again.").waitFor()
    })
    const [received] = yield* receiver.received(1)
    assert.strictEqual(received && WebhookReceiver.idOf(received), event)
    assert.deepInclude(received && WebhookReceiver.verified(secret, received), { data: { is: script } })
    const state = sql<{ state: string }>`SELECT state FROM webhook_deliveries WHERE org_id = ${org}`
    yield* eventually(state, ([row]) => row?.state === "delivered")
    yield* Effect.promise(async () => {
      const delivered = page.getByRole("region", { name: "Deliveries" }).locator("td.status", { hasText: "delivered" })
      await button(page, "Refresh").click()
      await delivered.waitFor()
      await change(page, `Remove ${url}`)
      await page.getByText("Endpoint removed.").waitFor()
      await page.getByText("No endpoints.").waitFor()
      assert.strictEqual(await page.locator("main :is(img, b)").count(), 0)
    })
    assert.deepStrictEqual((yield* endpoints).data, [])
    assert.deepStrictEqual(yield* auditOf(operator.name), [
      `console webhooks.remove ${id}`,
      `console webhooks.replay ${event}`,
      `console webhooks.enable ${id}`,
      `console webhooks.add ${id}`
    ])
    assert.deepStrictEqual(without(problems), [])
  })
})
