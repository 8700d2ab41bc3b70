import { Effect } from "effect"
import { adminAt, hire, read } from "../harness/client/AdminClient.ts"
import { isSkipped, openPage } from "../harness/client/Browser.ts"
import * as Served from "../harness/gateway/ServedGateway.ts"
import { assert, it } from "../harness/It.ts"
import { freePort } from "../harness/Listening.ts"
import { relay, serving } from "../harness/upstream/FakeUpstream.ts"
import { change, heading } from "./ConsoleParts.ts"

const prefix = "/gw"

/** A proxy that serves the gateway under a path prefix, because several services share a host. */
const proxied = (url: string, port: number) =>
  serving(
    (response, received) =>
      received.path.startsWith(`${prefix}/`)
        ? relay(url)(response, { ...received, path: received.path.slice(prefix.length) })
        : void response.writeHead(404).end(),
    { port }
  )

it.scoped.skipIf(isSkipped)("the console works with and without a path prefix of a proxy", function* () {
  const port = yield* freePort
  const PUBLIC_URL = `http://127.0.0.1:${port}${prefix}`
  yield* Effect.gen(function* () {
    const { url } = yield* Served.ServedGateway
    const proxy = yield* proxied(url, port)
    const owner = yield* hire("owner")
    const { link, token } = read(
      yield* adminAt(PUBLIC_URL, owner.token)("/operators", { body: { name: "ada", role: "write" } }),
      201
    )
    assert.match(link, new RegExp(`^${PUBLIC_URL}/console#link=`))
    const { page, problems } = yield* openPage([proxy.url, url])
    const asked: Array<string> = []
    page.on("request", (request) => asked.push(request.url()))
    yield* Effect.promise(async () => {
      await page.goto(link.replace("#", "/#"))
      await heading(page, "Dashboard").waitFor()
      await page.waitForURL(`${PUBLIC_URL}/console#/`)
      await page.getByRole("link", { name: "Organizations" }).click()
      await change(page, "Create organization", { Name: "acme" })
      await heading(page, "acme").waitFor()
      await page.reload()
      await heading(page, "acme").waitFor()
      await change(page, "Top up", { "Amount (USD)": "5", Reference: "INV 1" })
      await page.getByText("Added $5.00 to acme.").waitFor()
      await change(page, "Create key", { Name: "backend" })
      const dialog = page.getByRole("dialog", { name: "Your new key" })
      await dialog.getByText(`${PUBLIC_URL}/v1`, { exact: true }).waitFor()
      assert.strictEqual(await dialog.getByRole("link", { name: "Documentation" }).getAttribute("href"), "docs")
      await dialog.locator(".snippets").getByText(`curl '${PUBLIC_URL}/v1/chat/completions'`).waitFor()
      await dialog.getByRole("link", { name: "Use the key in the playground" }).click()
      await page.getByLabel("Message").fill("Say hello.")
      await page.keyboard.press("Control+Enter")
      await page
        .getByRole("log")
        .getByText(/^Charged/)
        .waitFor()
      await page.goBack()
      await heading(page, "acme").waitFor()
      await page.getByRole("link", { name: "View all entries" }).click()
      const downloading = page.waitForEvent("download")
      await page.getByRole("link", { name: "CSV" }).click()
      assert.isNull(await (await downloading).failure())
      assert.deepStrictEqual(
        asked.filter((address) => !address.startsWith(PUBLIC_URL) && !address.startsWith("data:")),
        []
      )

      await page.goto(`${url}/console#/organizations`)
      await page.getByLabel("Token").fill(token)
      await page.keyboard.press("Enter")
      await page.getByRole("link", { name: "acme" }).waitFor()
    })
    assert.deepStrictEqual(
      problems.filter((text) => !text.includes("status of 401")),
      []
    )
  }).pipe(
    Effect.provide(Served.layer(Effect.succeed({ env: { SANDBOX: "true", CONSOLE_PUBLIC: "true", PUBLIC_URL } })))
  )
})
