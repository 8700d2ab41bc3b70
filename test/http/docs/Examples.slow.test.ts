import { execFile, spawn, spawnSync } from "node:child_process"
import { existsSync, symlinkSync, writeFileSync } from "node:fs"
import path from "node:path"
import { promisify } from "node:util"
import { Effect, Schedule } from "effect"
import { Webhook } from "standardwebhooks"
import { fences, page, root } from "../../docs/Markdown.ts"
import { png } from "../../harness/fixtures/TinyMedia.ts"
import * as Served from "../../harness/gateway/ServedGateway.ts"
import { assert, describe, it, withLayer } from "../../harness/It.ts"
import { freePort } from "../../harness/Listening.ts"
import { temporaryDirectory } from "../../harness/temporary.ts"

const run = promisify(execFile)

const works = (...command: readonly [string, ...ReadonlyArray<string>]) =>
  spawnSync(command[0], command.slice(1), { stdio: "ignore" }).status === 0

const hasCurl = works("curl", "--version")
const hasPython = works("python3", "--version")
const hasPythonClient = hasPython && works("python3", "-c", "import openai, pydantic")

const guides = ["quickstart", "streaming", "tools", "structured-output", "images", "edit-images", "videos", "retries"]
const files = ["docs/api.md", "docs/errors.md", ...guides.map((name) => `docs/guides/${name}.md`)]

const exampleVideo = /vid_(?:…|9c2d6a4c1f0b4d5e8a7f3b2c1d0e9f8a)/g

/** The reference's examples share a client, which only the first of them makes. */
const completed = (code: string): string => {
  const needed = [
    [/\bfs\./, /import fs/, 'import fs from "node:fs"'],
    [/\bclient\b/, /import (?:OpenAI|Anthropic)/, 'import OpenAI from "openai"'],
    [
      /\bclient\b/,
      /const client/,
      'const client = new OpenAI({ baseURL: "https://gateway.example/v1", apiKey: process.env.GATEWAY_KEY })'
    ]
  ] as const
  const missing = needed.filter(([used, declared]) => used.test(code) && !declared.test(code))
  return [...missing.map(([, , line]) => line), code].join("\n")
}

/** Runs as a reader would: in a folder with pictures and the packages, and with the key in the environment. */
const reader = Effect.gen(function* () {
  const { url } = yield* Served.ServedGateway
  const { openai, secret } = yield* Served.customer()
  const cwd = yield* temporaryDirectory
  for (const name of ["cat.png", "hat.png"]) writeFileSync(path.join(cwd, name), png)
  symlinkSync(path.join(root, "node_modules"), path.join(cwd, "node_modules"))
  const options = { cwd, env: { ...process.env, GATEWAY_KEY: secret }, timeout: 60_000 }
  const adapt = (text: string) => text.replaceAll("https://gateway.example", url).replaceAll("ggw_…", secret)
  return { adapt, cwd, openai, run: (file: string, ...args: ReadonlyArray<string>) => run(file, args, options) }
})

/** Links to media name the port that is set. */
const gateway = Served.layer(Effect.map(freePort, (port) => ({ env: { SANDBOX: "true", PORT: String(port) } })))

withLayer(gateway)("the guides' examples", (it) => {
  for (const name of files) {
    const guide = page(name)
    const examples = (language: string) => fences(guide, language)

    it.scoped(`in JavaScript run as printed: ${name}`, function* () {
      const { adapt, run } = yield* reader
      for (const code of examples("js")) {
        const { stdout } = yield* Effect.promise(() =>
          run(process.execPath, "--input-type=module", "-e", adapt(completed(code)))
        )
        if (code.includes("console.log")) assert.isNotEmpty(stdout, code)
      }
    })

    it.scoped.skipIf(!hasCurl)(`in curl run as printed: ${name}`, function* () {
      const { adapt, openai, run } = yield* reader
      const commands = examples("sh").join("")
      const video = commands.search(exampleVideo) >= 0 ? yield* completedVideo(openai) : ""
      for (const code of examples("sh")) {
        const command = adapt(code)
          .replaceAll(exampleVideo, video)
          .replaceAll(/\bcurl /g, "curl -sS --fail-with-body ")
        yield* Effect.promise(() => run("sh", "-ec", command))
      }
    })

    it.scoped.skipIf(!hasPython)(`in Python are valid, and run if the client is installed: ${name}`, function* () {
      const { adapt, cwd, run } = yield* reader
      for (const code of examples("python")) {
        writeFileSync(path.join(cwd, "example.py"), adapt(code))
        yield* Effect.promise(() => run("python3", "-m", "py_compile", "example.py"))
        if (hasPythonClient) yield* Effect.promise(() => run("python3", "example.py"))
      }
    })
  }

  it.scoped("store what they download", function* () {
    const { adapt, cwd, run } = yield* reader
    const stored = [
      ["videos", "lighthouse.mp4"],
      ["images", "lighthouse.png"]
    ] as const
    for (const [name, file] of stored) {
      const code = fences(page(`docs/guides/${name}.md`), "js").find((text) => text.includes(file)) ?? ""
      yield* Effect.promise(() => run(process.execPath, "--input-type=module", "-e", adapt(code)))
      assert.isTrue(existsSync(path.join(cwd, file)), file)
    }
  })
})

describe("the receiver of webhooks", () => {
  it.scopedLive("runs as printed, and accepts only signed events", function* () {
    const [code = ""] = fences(page("docs/webhooks.md"), "js")
    const port = yield* freePort
    const secret = `whsec_${Buffer.from("a secret of the tests, 32 bytes.").toString("base64")}`
    const receiver = yield* Effect.acquireRelease(
      Effect.sync(() =>
        spawn(process.execPath, ["--input-type=module", "-e", code], {
          cwd: root,
          env: { ...process.env, PORT: String(port), WEBHOOK_SECRET: secret }
        })
      ),
      (child) => Effect.sync(() => child.kill())
    )
    const printed: Array<string> = []
    receiver.stdout.setEncoding("utf8").on("data", (text: string) => printed.push(text))
    const body = JSON.stringify({
      type: "video.completed",
      timestamp: "2026-11-21T07:45:01.204Z",
      data: { id: "vid_1" }
    })
    const now = new Date()
    const send = (signature: string) =>
      Effect.tryPromise(() =>
        fetch(`http://127.0.0.1:${port}`, {
          method: "POST",
          headers: {
            "webhook-id": "evt_1",
            "webhook-timestamp": String(Math.floor(now.getTime() / 1000)),
            "webhook-signature": signature
          },
          body
        })
      ).pipe(Effect.retry({ times: 100, schedule: Schedule.spaced("100 millis") }))
    assert.strictEqual((yield* send("v1,AAAA")).status, 400)
    assert.strictEqual((yield* send(new Webhook(secret).sign("evt_1", now, body))).status, 204)
    assert.match(printed.join(""), /^evt_1 video\.completed \{ id: 'vid_1' \}\n$/)
  })

  it.effect.skipIf(!hasPython)("is valid in Python", function* () {
    const [input = ""] = fences(page("docs/webhooks.md"), "python")
    const parse = ["-c", "import ast, sys; ast.parse(sys.stdin.read())"]
    const { status, stderr } = yield* Effect.sync(() => spawnSync("python3", parse, { input, encoding: "utf8" }))
    assert.strictEqual(status, 0, stderr)
  })
})

const completedVideo = (openai: Served.Customer["openai"]) =>
  Effect.promise(async () => {
    let video = await openai.videos.create({ model: "veo-3.1-fast-generate-001", prompt: "Fog" })
    while (video.status !== "completed") {
      assert.notStrictEqual(video.status, "failed")
      await new Promise((resolve) => setTimeout(resolve, 500))
      video = await openai.videos.retrieve(video.id)
    }
    return video.id
  })
