import { Effect } from "effect"
import type { Page } from "playwright-core"
import { vi } from "vitest"
import type { OrgId } from "../../src/domain/Organization.ts"
import { isSkipped } from "../harness/client/Browser.ts"
import * as Served from "../harness/gateway/ServedGateway.ts"
import { earlyAnswers, earlyPolls } from "../harness/gateway/ShortTimings.ts"
import { assert, withLayer } from "../harness/It.ts"
import { freePort } from "../harness/Listening.ts"
import { findMisfits, inBothThemes, openConsole } from "./ConsolePage.ts"
import { button, heading, inputLabel, narrow, tabTo, without } from "./ConsoleParts.ts"

/** Links to media name the port that is set. */
const gateway = Served.layer(
  Effect.map(freePort, (port) => ({
    env: { SANDBOX: "true", PORT: String(port) },
    timings: { ...earlyAnswers, ...earlyPolls }
  }))
)

const log = (page: Page) => page.getByRole("log")
const message = (page: Page) => page.getByLabel("Message")
const prompt = (page: Page) => page.getByLabel("Prompt", { exact: true })
const code = (page: Page) => page.locator(".snippets code")

const applyKey = async (page: Page, secret: string) => {
  await page.getByLabel("API key").fill(secret)
  await button(page, "Use key").click()
  await page.getByLabel("Model").waitFor()
}

const sendMessage = async (page: Page, text: string) => {
  await message(page).fill(text)
  await button(page, "Send").click()
}

/** Opens the playground with the key of a new customer. */
const openPlayground = Effect.fnUntraced(function* (
  options: { readonly nanoUsd?: bigint; readonly model?: string } & Parameters<typeof openConsole>[0] = {}
) {
  const { model, nanoUsd, ...consoleOptions } = options
  const customer = yield* Served.customer(nanoUsd === undefined ? {} : { nanoUsd })
  const hash = model === undefined ? "#/playground" : `#/playground?model=${model}`
  const opened = yield* openConsole({ hash, ...consoleOptions })
  yield* Effect.promise(() => applyKey(opened.page, customer.secret))
  return { ...opened, customer }
})

/** Records the bodies of requests to a path of the API. */
const recordBodies = (page: Page, path: string): ReadonlyArray<string> => {
  const bodies: Array<string> = []
  page.on("request", (request) => {
    if (new URL(request.url()).pathname === path && request.method() === "POST") bodies.push(request.postData() ?? "")
  })
  return bodies
}

/** Returns the body in the curl command that the page shows. */
const bodyInCode = async (page: Page): Promise<unknown> => {
  const [, body = ""] = /-d '([\s\S]*)'\)?(?:\n|$)/.exec(await code(page).innerText()) ?? []
  return JSON.parse(body.replaceAll("'\\''", "'"))
}

withLayer(gateway)("the playground", (it) => {
  it.scoped.skipIf(isSkipped)("streams a chat of several messages, with its charge and its request", function* () {
    const { customer, page, problems, url } = yield* openPlayground({ model: "gpt-5.2" })
    const bodies = recordBodies(page, "/v1/chat/completions")
    const requestId = yield* Effect.promise(async () => {
      assert.strictEqual(await page.getByLabel("Model").inputValue(), "gpt-5.2")
      assert.strictEqual(await page.getByLabel("temperature").count(), 0)
      await page.getByLabel("System prompt").fill('It\'s "brief".')
      await page.getByLabel("max_tokens").fill("50")
      await message(page).fill("Say hello.")
      await page.getByText(/^At most \$/).waitFor()
      const shown = await bodyInCode(page)
      await button(page, "Send").click()
      await log(page)
        .getByText(/^Charged \$0\.0/)
        .waitFor()
      assert.deepStrictEqual(JSON.parse(bodies[0] ?? ""), shown)
      assert.deepStrictEqual(await bodyInCode(page), shown)
      await page.getByText("This is a sandbox answer").first().waitFor()
      await log(page)
        .getByText(/\d+ prompt tokens, \d+ completion tokens/)
        .waitFor()
      await message(page).fill("Again.")
      await page.keyboard.press("Control+Enter")
      await vi.waitFor(
        async () =>
          assert.strictEqual(
            await log(page)
              .getByText(/^Charged/)
              .count(),
            2
          ),
        20_000
      )
      const roles = JSON.parse(bodies[1] ?? "").messages.map(({ role }: { readonly role: string }) => role)
      assert.deepStrictEqual(roles, ["system", "user", "assistant", "user"])
      assert.strictEqual(JSON.parse(bodies[1] ?? "").max_tokens, 50)
      const link = log(page)
        .getByRole("link", { name: /^Request/ })
        .first()
      const hash = (await link.getAttribute("href")) ?? ""
      return hash.split("/").at(-1)
    })
    const row = yield* Served.logged(requestId)
    assert.strictEqual(row.orgId, customer.org)
    yield* Effect.promise(async () => {
      await log(page)
        .getByRole("link", { name: /^Request/ })
        .first()
        .click()
      await page.locator("h1", { hasText: "Request" }).waitFor()
      await page.getByRole("region", { name: "Price", exact: true }).waitFor()
      await page.goBack()
      await log(page).getByText("Say hello.", { exact: true }).waitFor()
      assert.isTrue(page.url().startsWith(url))
    })
    assert.deepStrictEqual(without(problems), [])
  })

  it.scoped.skipIf(isSkipped)("stops an answer", function* () {
    const { page, problems } = yield* openPlayground()
    yield* Effect.promise(async () => {
      await sendMessage(page, "Count. [sandbox gap=1000]")
      await log(page).getByText(/^This/).waitFor()
      await button(page, "Stop").click()
      await log(page)
        .getByText(/^Stopped/)
        .waitFor()
      await button(page, "Send").waitFor()
    })
    assert.deepStrictEqual(without(problems), [])
  })

  it.scoped.skipIf(isSkipped)("shows errors with their hints, and returns the message", function* () {
    const { customer, page, problems } = yield* openPlayground({ nanoUsd: 1n })
    yield* Effect.promise(async () => {
      await page.route(/\/admin\/v1\/session$/, async (route) => {
        const response = await route.fetch()
        const session = await response.json()
        await route.fulfill({ response, json: { ...session, payments: { minimum_usd: 5, maximum_usd: 100 } } })
      })
      await page.reload()
      await applyKey(page, customer.secret)
      await sendMessage(page, "Say hello.")
      await log(page).getByRole("alert").getByText("Insufficient credits.").waitFor()
      const payment = log(page).getByRole("link", { name: "Add credits" })
      assert.strictEqual(await payment.getAttribute("href", { timeout: 5000 }), "#/payments")
      await log(page)
        .getByRole("link", { name: /^Request/ })
        .waitFor()
      assert.strictEqual(await message(page).inputValue(), "Say hello.")
      await page.getByText("The balance or a spending cap does not cover it.").waitFor()
      await button(page, "Clear key").click()
      await page.getByLabel("API key").fill("ggw_wrong")
      await button(page, "Use key").click()
      await page.getByRole("alert").getByText("Invalid API key provided.").waitFor()
      await heading(page, "Playground").waitFor()
    })
    assert.deepStrictEqual(without(problems, 401, 402), [])
  })

  it.scoped.skipIf(isSkipped)("shows pictures, and videos when they complete", function* () {
    const { page, problems } = yield* openPlayground({ model: "gemini-3-pro-image" })
    const images = recordBodies(page, "/v1/images/generations")
    const videos = recordBodies(page, "/v1/videos")
    yield* Effect.promise(async () => {
      await page.getByLabel("resolution").selectOption("2K")
      await prompt(page).fill("A lighthouse")
      await page.getByText("At most $0.15").waitFor()
      await button(page, "Send").click()
      const picture = log(page).getByRole("img", { name: "A lighthouse" })
      await picture.waitFor()
      await vi.waitFor(
        async () => assert.strictEqual(await picture.evaluate((image) => Reflect.get(image, "naturalWidth")), 2048),
        20_000
      )
      await log(page).getByText("Charged $0.15").waitFor()
      assert.deepStrictEqual(JSON.parse(images[0] ?? ""), await bodyInCode(page))

      await page.getByLabel("Model").selectOption("veo-3.1-fast-generate-001")
      await page.getByLabel("seconds").waitFor()
      await page.getByLabel("seconds").fill("4")
      await prompt(page).fill("Waves")
      await page.getByText(/^At most \$/).waitFor()
      await button(page, "Send").click()
      await log(page).locator("video").waitFor({ timeout: 60_000 })
      await vi.waitFor(
        async () =>
          assert.isAtLeast(
            await log(page)
              .locator("video")
              .evaluate((video) => Reflect.get(video, "readyState")),
            1
          ),
        20_000
      )
      await log(page).getByText("Charged $0.60").waitFor()
      await log(page)
        .getByRole("link", { name: /^Video vid_/ })
        .waitFor()
      assert.deepStrictEqual(JSON.parse(videos[0] ?? ""), await bodyInCode(page))
      assert.strictEqual(JSON.parse(videos[0] ?? "").seconds, 4)

      const source = await log(page).locator("video").getAttribute("src")
      await log(page)
        .getByRole("link", { name: /^Video vid_/ })
        .click()
      await page.getByRole("heading", { name: "Attempts" }).waitFor()
      const player = page.locator("main video")
      assert.strictEqual(await player.getAttribute("src"), source)
      await vi.waitFor(
        async () => assert.isAtLeast(await player.evaluate((video) => Reflect.get(video, "readyState")), 1),
        20_000
      )
      const download = page.waitForEvent("download")
      await page.getByRole("link", { name: "Download" }).click()
      assert.match((await download).suggestedFilename(), /\.mp4$/)
      const cost = await page.locator('main td[data-label="Cost"]').last().innerText()
      assert.match(cost, /^\$0\.\d+$/)
      assert.deepStrictEqual(await findMisfits(page, inBothThemes(360, 1440)), [])
    })
    assert.deepStrictEqual(without(problems), [])
  })

  it.scoped.skipIf(isSkipped)("polls no video that is gone, and none after the key is cleared", function* () {
    const { page, problems } = yield* openPlayground({ model: "veo-3.1-fast-generate-001" })
    yield* Effect.promise(async () => {
      let polls = 0
      let isGone = false
      const error = { message: "The video does not exist.", type: "invalid_request_error", param: null, code: null }
      await page.route(/\/v1\/videos\/vid_/, (route) => {
        polls++
        const [id] = /vid_\w+/.exec(route.request().url()) ?? []
        return isGone
          ? route.fulfill({ status: 404, json: { error } })
          : route.fulfill({ json: { id, status: "in_progress", progress: 10 } })
      })
      await prompt(page).waitFor()
      await page.clock.install()
      const create = async () => {
        await prompt(page).fill("Waves")
        await button(page, "Send").click()
        await log(page).getByText("Video queued").waitFor()
        await page.clock.runFor(2000)
        await log(page).getByText("Video in progress, 10 %").waitFor()
      }
      await create()
      isGone = true
      await page.clock.runFor(2000)
      await log(page).getByText(error.message).waitFor()
      const pollsOfFirst = polls
      await page.clock.runFor(20_000)
      assert.strictEqual(polls, pollsOfFirst)

      isGone = false
      await button(page, "Clear results").click()
      await create()
      const pollsBefore = polls
      await button(page, "Clear key").click()
      await page.clock.runFor(20_000)
      assert.strictEqual(polls, pollsBefore)
    })
    assert.deepStrictEqual(without(problems, 404), [])
  })

  it.scoped.skipIf(isSkipped)("shows reasoning apart from the answer, and sends an image to a model", function* () {
    const { page, problems } = yield* openPlayground({ model: "gemini-3.6-flash" })
    const bodies = recordBodies(page, "/v1/chat/completions")
    yield* Effect.promise(async () => {
      await page.getByLabel("reasoning_effort").selectOption("high")
      await page.getByLabel("Image file").setInputFiles({
        name: "dot.png",
        mimeType: "image/png",
        buffer: Buffer.from(
          "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==",
          "base64"
        )
      })
      await button(page, "Clear image").waitFor()
      await sendMessage(page, "Think.")
      await log(page)
        .getByText(/^Charged/)
        .waitFor()
      await log(page).getByText("Reasoning").click()
      const [text] = JSON.parse(bodies[0] ?? "").messages[0].content
      assert.deepStrictEqual(text, { type: "text", text: "Think." })
    })
    assert.deepStrictEqual(without(problems), [])
  })

  it.scoped.skipIf(isSkipped)("forgets the key at a reload, and stores it nowhere", function* () {
    const { customer, page, problems } = yield* openPlayground()
    yield* Effect.promise(async () => {
      await sendMessage(page, "Say hello.")
      await log(page)
        .getByText(/^Charged/)
        .waitFor()
      const stored = "JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie, location.href])"
      assert.notInclude(await page.evaluate<string>(stored), customer.secret)
      assert.notInclude(await page.content(), customer.secret)
      await page.reload()
      await page.getByLabel("API key").waitFor()
      assert.strictEqual(await page.getByLabel("API key").inputValue(), "")
      await applyKey(page, customer.secret)
      await button(page, "Sign out").click()
      await page.getByLabel("Token").waitFor()
    })
    assert.deepStrictEqual(without(problems), [])
  })

  const createKeyAndChat = async (page: Page, org: OrgId | undefined) => {
    await button(page, "Create key").click()
    const dialog = page.getByRole("dialog")
    if (org !== undefined) await dialog.getByLabel("Organization").fill(org)
    await dialog.getByLabel(inputLabel("key", "cap_usd"), { exact: true }).fill("1")
    await dialog.locator("button.primary").click()
    await page.getByLabel("Model").waitFor()
    await sendMessage(page, "Say hello.")
    await log(page)
      .getByText(/^Charged/)
      .waitFor()
  }

  it.scoped.skipIf(isSkipped)("creates a key for an operator and for a member", function* () {
    const { org } = yield* Served.customer()
    const operator = yield* openConsole({ hash: "#/playground" })
    yield* Effect.promise(() => createKeyAndChat(operator.page, org))
    const member = yield* openConsole({ role: "write", org, hash: "#/playground" })
    yield* Effect.promise(() => createKeyAndChat(member.page, undefined))
    const reader = yield* openConsole({ role: "read", org, hash: "#/playground" })
    yield* Effect.promise(async () => {
      await reader.page.getByLabel("API key").waitFor()
      assert.strictEqual(await button(reader.page, "Create key").count(), 0)
    })
    assert.deepStrictEqual(without([...operator.problems, ...member.problems, ...reader.problems]), [])
  })

  it.scoped.skipIf(isSkipped)("works by keyboard, is accessible and fits at 360 px in both themes", function* () {
    const { page, problems } = yield* openPlayground({ ...narrow })
    yield* Effect.promise(async () => {
      await message(page).focus()
      await page.keyboard.type(`Say hello to ${"x".repeat(200)}.`)
      await tabTo(page, "Send")
      await page.keyboard.press("Enter")
      await log(page)
        .getByText(/^Charged/)
        .waitFor()
      assert.deepStrictEqual(await findMisfits(page, inBothThemes(360, 1440)), [])
      await page.getByRole("radio", { name: "curl" }).focus()
      await page.keyboard.press("ArrowRight")
      await code(page).getByText("from openai import OpenAI").waitFor()
      await button(page, "Copy as Python").waitFor()
    })
    assert.deepStrictEqual(without(problems), [])
  })
})
