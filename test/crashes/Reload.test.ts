import { spawn } from "node:child_process"
import { writeFile } from "node:fs/promises"
import path from "node:path"
import { Deferred, Effect, Fiber, Schedule } from "effect"
import { openAccount } from "../harness/client/Account.ts"
import { type Answer, ask, type ConnectionBroke, codeOf, get, openStream } from "../harness/client/ChatClient.ts"
import { draw, film, imageOf, isReplay, pollUntilFinished, price, see, videoOf } from "../harness/client/MediaClient.ts"
import { assertCharged, copies, eventually, moneyOf, times } from "../harness/database/Money.ts"
import { Deployment, deploymentTest } from "../harness/gateway/Deployment.ts"
import { type GatewayProcess, program } from "../harness/gateway/GatewayProcess.ts"
import { assert, describe } from "../harness/It.ts"
import * as RenderFarm from "../harness/upstream/RenderFarm.ts"
import { priceOf, videoCatalog } from "../harness/upstream/RenderFarm.ts"
import { charge, either, paints, stream } from "../harness/upstream/Replies.ts"
import * as Workers from "./WorkerProcesses.ts"

interface Finished {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

/** Runs the built program's command beside the gateways of a deployment. */
const runCommand = (...args: ReadonlyArray<string>) =>
  Effect.flatMap(Deployment, ({ directory, env }) =>
    Effect.async<Finished>((resume) => {
      const child = spawn(process.execPath, [program, ...args], {
        cwd: directory,
        env: { PATH: process.env["PATH"], HOME: process.env["HOME"], ...env },
        stdio: ["ignore", "pipe", "pipe"]
      })
      let stdout = ""
      let stderr = ""
      child.stdout.setEncoding("utf8").on("data", (text: string) => (stdout += text))
      child.stderr.setEncoding("utf8").on("data", (text: string) => (stderr += text))
      child.on("close", (code) => resume(Effect.succeed({ code, stdout, stderr })))
      return Effect.sync(() => child.kill("SIGKILL"))
    })
  )

/** `m1` at one price times a factor, over two routes, and `m2` if there is to be one. */
const catalogOf = (upstream: string, { factor = 1, more = false } = {}) => {
  const model = (id: string) => `
  - id: ${id}
    surface: chat
    family: A
    context_length: 100000
    max_output: 8000
    pricing: {prompt_per_1m_usd: ${factor}, completion_per_1m_usd: ${2 * factor}}
    reasoning: none
    capabilities: []
    image_tokens: 1000
    created: 2026-01-01
    routes: [{provider: first, model: up1}, {provider: second, model: up2, preference: 2}]`
  return `
providers:
  first: {adapter: openai-chat, base_url: "${upstream}/first", credential: ROTATED_KEY}
  second: {adapter: openai-chat, base_url: "${upstream}/second", credential: ROTATED_KEY}
families:
  A: {sampling: true, max_output_policy: clamp}
models:${model("m1")}${more ? model("m2") : ""}
`
}

/** Credentials are in `.env`, where an operator can change them. */
const startWith = Effect.fnUntraced(function* (text: string, env: Readonly<Record<string, string>> = {}) {
  const { directory, gateway } = yield* Deployment
  const write = (file: string, content: string) => Effect.promise(() => writeFile(path.join(directory, file), content))
  const rotate = (key: string) => write(".env", `ROTATED_KEY=${key}\nFARM_KEY=${key}\n`)
  const sell = (content: string) => write("catalog.yaml", content)
  yield* rotate("old")
  yield* sell(text)
  const line = [process.execPath, program, "serve"] as const
  const start = gateway({ env, command: { line, cwd: directory } })
  return { gateway: yield* start, rotate, sell, start }
})

const hangUp = ({ process }: GatewayProcess) => Effect.sync(() => process.kill("SIGHUP"))

const logged = ({ stderr }: GatewayProcess, line: RegExp) => eventually(Effect.sync(stderr), (text) => line.test(text))

const modelsOf = ({ url }: Pick<GatewayProcess, "url">, secret: string) =>
  Effect.map(get(`${url}/v1/models`, { authorization: `Bearer ${secret}` }), ({ text }) => text)

const askFor = ({ url }: Pick<GatewayProcess, "url">, secret: string, model: string) =>
  Workers.fetchAnew(`${url}/v1/chat/completions`, {
    headers: { authorization: `Bearer ${secret}`, "content-type": "application/json" },
    body: { model, max_tokens: 10, messages: [{ role: "user", content: "hi" }] }
  })

describe("SIGHUP", () => {
  deploymentTest("brings new prices and credentials, but not to a stream that has begun", function* ({ upstream }) {
    const { gateway, rotate, sell } = yield* startWith(catalogOf(upstream.url))
    const { org, secret } = yield* openAccount({})
    const more = yield* Deferred.make<void>()
    yield* upstream.script(stream(Deferred.await(more)), either)
    const open = yield* openStream({ url: gateway.url, secret })
    yield* open.until("Hello")
    const before = yield* get(`${gateway.url}/v1/openapi.json`)

    yield* rotate("new")
    yield* sell(catalogOf(upstream.url, { factor: 2, more: true }))
    yield* hangUp(gateway)
    yield* logged(gateway, /Catalog reloaded: \w{12}, with 2 models/)
    assert.strictEqual((yield* ask({ url: gateway.url, secret })).status, 200)
    yield* Deferred.succeed(more, undefined)
    assert.match(yield* open.rest, /\[DONE\]\n\n$/)

    yield* assertCharged(org, [2n * charge, charge])
    const keys = yield* Effect.all([upstream.received, upstream.received])
    assert.deepStrictEqual(
      keys.map(({ headers }) => headers.authorization),
      ["Bearer old", "Bearer new"]
    )
    const list = yield* modelsOf(gateway, secret)
    assert.match(list, /"m1".*"prompt_per_1m_usd":2,.*"m2"/)
    assert.notInclude(before.text, '"m2"')
    assert.include((yield* get(`${gateway.url}/v1/openapi.json`)).text, '"m2"')
  })

  deploymentTest("with a broken catalog changes nothing and logs the line", function* ({ upstream }) {
    const { gateway, sell } = yield* startWith(catalogOf(upstream.url))
    const { org, secret } = yield* openAccount({})
    yield* sell(catalogOf(upstream.url, { factor: 2 }).replace("context_length: 100000", "context_length: long"))
    yield* hangUp(gateway)
    yield* logged(
      gateway,
      /Catalog reload failed, the previous catalog stays in use: .*catalog\.yaml:11: models\[0\]\.context_length: /
    )
    yield* upstream.script(either)
    assert.strictEqual((yield* ask({ url: gateway.url, secret })).status, 200)
    yield* assertCharged(org, [charge])

    const refused = yield* runCommand("catalog", "reload")
    assert.strictEqual(refused.code, 1)
    assert.match(refused.stdout, / refused .*\n\n.*catalog\.yaml:11: models\[0\]\.context_length: /)
    assert.strictEqual(refused.stderr, "gateway: 1 of 1 instance keeps its previous catalog.\n")
  })

  deploymentTest("takes credentials away from renders that go on with them all the same", function* ({ directory }) {
    let isOpen = false
    const farm = yield* RenderFarm.make({
      fate: () => ({ submit: "taken", polls: 2, end: "clip" }),
      isOpen: () => isOpen
    })
    const { upstream } = yield* Deployment
    const { gateway, sell } = yield* startWith(videoCatalog(farm.url))
    const { org, secret } = yield* openAccount({})
    const from = { url: gateway.url, secret }
    const asked = { ...from, key: "waves", body: { model: "film", prompt: "waves", seconds: 4 } }
    const video = videoOf(yield* film(asked), 202)
    yield* sell(catalogOf(upstream.url))
    yield* Effect.promise(() => writeFile(path.join(directory, ".env"), "ROTATED_KEY=k\n"))
    yield* hangUp(gateway)
    yield* logged(gateway, /Catalog reloaded/)
    const again = yield* film({ ...from, body: { model: "film", prompt: "more waves", seconds: 4 } })
    assert.deepStrictEqual([again.status, codeOf(again)], [404, "model_not_found"])
    // A repeated request is no new one, also when its model is gone.
    const repeated = yield* film(asked)
    assert.isTrue(isReplay(repeated))
    assert.deepStrictEqual(videoOf(repeated, 202), video)
    const other = yield* film({ ...asked, body: { ...asked.body, prompt: "more waves" } })
    assert.deepStrictEqual([other.status, codeOf(other)], [404, "model_not_found"])
    isOpen = true
    const states = yield* pollUntilFinished(Effect.map(see(from, `/${video.id}`), (answer) => videoOf(answer)))
    assert.strictEqual(states.at(-1), "completed")
    assert.deepStrictEqual([...new Set(farm.calls.map(({ credential }) => credential))], ["Key old"])
    yield* assertCharged(org, [priceOf(4)])
  })
})

describe("a model that is gone", () => {
  deploymentTest("still gives what was paid for to a repeated request", function* ({ upstream }) {
    const drawing = `
providers:
  drawer: {adapter: openai-images, base_url: "${upstream.url}/v1", credential: ROTATED_KEY}
models:
  - {id: i1, surface: image, pricing: {per_image_usd: 0.04}, edit: false, routes: [{provider: drawer, model: up2}]}
`
    const { gateway, sell } = yield* startWith(drawing)
    const { org, secret } = yield* openAccount({})
    const asked = { url: gateway.url, secret, key: "once", more: { response_format: "b64_json" } }
    yield* upstream.script(paints())
    const first = yield* draw(asked)
    assert.strictEqual(first.status, 200)
    yield* sell(catalogOf(upstream.url))
    yield* hangUp(gateway)
    yield* logged(gateway, /Catalog reloaded/)
    const repeated = yield* draw(asked)
    assert.deepStrictEqual([isReplay(repeated), repeated.text], [true, first.text])
    for (const fresh of [
      { ...asked, key: "twice" },
      { ...asked, prompt: "a dog" }
    ]) {
      assert.strictEqual((yield* draw(fresh)).status, 404)
    }
    yield* assertCharged(org, [price])
  })

  deploymentTest("still gives both forms of an image to a repeated request that named none", function* ({ upstream }) {
    const drawing = `
providers:
  drawer: {adapter: openai-images, base_url: "${upstream.url}/v1", credential: ROTATED_KEY}
models:
  - {id: gpt-image-9, surface: image, pricing: {per_image_usd: 0.04}, edit: false, routes: [{provider: drawer, model: up2}]}
`
    const { gateway, sell } = yield* startWith(drawing)
    const { org, secret } = yield* openAccount({})
    const asked = { url: gateway.url, secret, key: "once", more: { model: "gpt-image-9" } }
    yield* upstream.script(paints())
    const first = yield* draw(asked)
    assert.sameMembers(Object.keys(imageOf(first)), ["url", "b64_json"])
    yield* sell(catalogOf(upstream.url))
    yield* hangUp(gateway)
    yield* logged(gateway, /Catalog reloaded/)
    const repeated = yield* draw(asked)
    assert.deepStrictEqual([isReplay(repeated), repeated.text], [true, first.text])
    yield* assertCharged(org, [price])
  })
})

describe("gateway catalog reload", () => {
  deploymentTest("reaches every instance and every worker, with the credentials of now", function* ({ upstream }) {
    const { gateway, rotate, sell, start } = yield* startWith(catalogOf(upstream.url), { WORKERS: "2" })
    const other = yield* start
    yield* logged(gateway, /Listening on/)
    yield* logged(other, /Listening on/)
    const { secret } = yield* openAccount({})
    yield* rotate("new")
    yield* sell(catalogOf(upstream.url, { more: true }))
    const { code, stderr, stdout } = yield* runCommand("catalog", "reload")
    assert.deepStrictEqual({ code, stderr }, { code: 0, stderr: "" })
    assert.lengthOf(stdout.match(/ reloaded +\w{12} +2 +\S+$/gm) ?? [], 4)
    yield* upstream.script(...times(8).map(() => either))
    for (const _ of times(4)) {
      assert.strictEqual((yield* askFor(gateway, secret, "m2")).status, 200)
      assert.strictEqual((yield* askFor(other, secret, "m2")).status, 200)
    }
    for (const _ of times(8)) assert.strictEqual((yield* upstream.received).headers.authorization, "Bearer new")

    yield* sell(catalogOf(upstream.url))
    assert.strictEqual((yield* runCommand("catalog", "reload")).code, 0)
    for (const _ of times(4)) assert.strictEqual((yield* askFor(gateway, secret, "m2")).status, 404)
  })

  deploymentTest("says that no gateway runs", function* () {
    const { code, stdout } = yield* runCommand("catalog", "reload")
    assert.deepStrictEqual(
      { code, stdout },
      { code: 0, stdout: "No gateway is running. A gateway reads its catalog when it starts.\n" }
    )
  })
})

describe("gateway routes", () => {
  deploymentTest("disable takes a route from the traffic without a failed request", function* ({ upstream }) {
    const { gateway } = yield* startWith(catalogOf(upstream.url))
    const { org, secret } = yield* openAccount({ rpm: 100_000 })
    const scope = yield* Effect.scope
    const chats: Array<Fiber.Fiber<Answer, ConnectionBroke>> = []
    yield* upstream.script(...times(3_000).map(() => either))
    const traffic = yield* Effect.suspend(() => ask({ url: gateway.url, secret, stream: chats.length % 2 === 0 })).pipe(
      Effect.forkIn(scope),
      Effect.map((fiber) => chats.push(fiber)),
      Effect.schedule(Schedule.fixed("20 millis")),
      Effect.fork
    )
    const awaitAt = (prefix: string) =>
      Effect.repeat(upstream.received, { until: ({ path }) => path.startsWith(prefix) }).pipe(
        Effect.timeout("30 seconds")
      )
    yield* awaitAt("/first/")
    const disabled = yield* runCommand("routes", "disable", "m1@first", "--note", "an outage", "--json")
    assert.deepInclude(JSON.parse(disabled.stdout), { id: "m1@first", disabled: true, note: "an outage" })
    yield* awaitAt("/second/")
    const shown = yield* runCommand("providers")
    assert.match(shown.stdout, /^m1@first +disabled /m)
    assert.match(shown.stdout, /^m1@first +\d{4}-\S+ \S+Z +\S+ +an outage$/m)
    assert.strictEqual((yield* runCommand("routes", "enable", "m1@first")).code, 0)
    yield* awaitAt("/first/")
    yield* Fiber.interrupt(traffic)
    const ends = yield* Fiber.join(Fiber.all(chats))
    assert.deepStrictEqual([...new Set(ends.map(({ status }) => status))], [200])
    assert.isTrue(ends.every(({ text }) => /Hello/.test(text)))
    yield* eventually(moneyOf(org), ({ openHolds }) => openHolds === 0)
    yield* assertCharged(org, copies(charge, ends.length))
  })

  deploymentTest("disabled altogether are refused as if every circuit were open, also after a restart", function* () {
    const { upstream } = yield* Deployment
    const { gateway, start } = yield* startWith(catalogOf(upstream.url))
    const { org, secret } = yield* openAccount({})
    for (const route of ["m1@first", "m1@second"]) {
      assert.strictEqual((yield* runCommand("routes", "disable", route)).code, 0)
    }
    const refused = (url: string) =>
      Effect.map(ask({ url, secret }), (answer) => [answer.status, answer.text.includes("No healthy provider")])
    yield* upstream.script(...times(100).map(() => either))
    yield* eventually(refused(gateway.url), ([status]) => status === 503)
    const other = yield* start
    assert.deepStrictEqual(yield* refused(other.url), [503, true])
    assert.strictEqual((yield* moneyOf(org)).openHolds, 0)
  })
})
