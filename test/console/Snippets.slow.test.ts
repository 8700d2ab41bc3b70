import { execFile, spawnSync } from "node:child_process"
import { existsSync, symlinkSync, writeFileSync } from "node:fs"
import path from "node:path"
import { promisify } from "node:util"
import { Effect } from "effect"
import { type ApiRequest, exampleRequest, type Language, snippets } from "../../src/console/format/Snippets.ts"
import { root } from "../docs/Markdown.ts"
import * as Served from "../harness/gateway/ServedGateway.ts"
import { earlyAnswers, earlyPolls } from "../harness/gateway/ShortTimings.ts"
import { assert, withLayer } from "../harness/It.ts"
import { freePort } from "../harness/Listening.ts"
import { temporaryDirectory } from "../harness/temporary.ts"

const works = (...command: readonly [string, ...ReadonlyArray<string>]) =>
  spawnSync(command[0], command.slice(1), { stdio: "ignore" }).status === 0

const hasCurl = works("curl", "--version")
const hasPython = works("python3", "--version")
const hasPythonClients = hasPython && works("python3", "-c", "import openai, requests")

const hard = `It's a "test": \\n $HOME \`id\` true, null\n${"ü".repeat(3)}</code>`

const requests: ReadonlyArray<readonly [name: string, request: ApiRequest, output: RegExp]> = [
  ["a chat", exampleRequest("gpt-5.2", "chat"), /This is a sandbox answer/],
  [
    "a streamed chat with parameters",
    {
      surface: "chat",
      body: {
        model: "gemini-3.6-flash",
        messages: [{ role: "user", content: hard }],
        temperature: 0.5,
        max_tokens: 200,
        web_search: false,
        stream: true,
        stream_options: { include_usage: true },
        usage: { include: true }
      }
    },
    /sandbox/
  ],
  ["an image", exampleRequest("gemini-3-pro-image", "image"), /\/media\/public\//],
  [
    "an image with parameters",
    { surface: "image", body: { model: "gemini-3-pro-image", prompt: hard, resolution: "2K", response_format: "url" } },
    /\/media\/public\//
  ],
  ["a video", exampleRequest("veo-3.1-fast-generate-001", "video"), /^/]
]

/** Runs as a reader would: in a folder with the packages, and with the key in the environment. */
const run = Effect.fnUntraced(function* (language: Language, request: ApiRequest, isKeyInCode: boolean) {
  const { baseUrl, secret } = yield* Served.customer()
  const cwd = yield* temporaryDirectory
  symlinkSync(path.join(root, "node_modules"), path.join(cwd, "node_modules"))
  const code = snippets[language](request, { baseUrl, apiKey: isKeyInCode ? secret : undefined })
  const env = { ...process.env, ...(isKeyInCode ? {} : { GATEWAY_KEY: secret }) }
  const start = (file: string, ...args: ReadonlyArray<string>) =>
    Effect.promise(() => promisify(execFile)(file, args, { cwd, env, timeout: 60_000 }))
  const hasVideo = () => existsSync(path.join(cwd, "video.mp4"))
  return { code, cwd, hasVideo, start }
})

/** Links to media name the port that is set. */
const gateway = Served.layer(
  Effect.map(freePort, (port) => ({
    env: { SANDBOX: "true", PORT: String(port) },
    timings: { ...earlyAnswers, ...earlyPolls }
  }))
)

withLayer(gateway)("the console's code", (it) => {
  for (const [index, [name, request, output]] of requests.entries()) {
    const isKeyInCode = index % 2 === 0
    const isVideo = request.surface === "video"

    it.scoped.skipIf(!hasCurl)(`sends ${name} with curl`, function* () {
      const { code, hasVideo, start } = yield* run("curl", request, isKeyInCode)
      const { stdout } = yield* start("sh", "-ec", code)
      assert.match(stdout, output)
      assert.strictEqual(hasVideo(), isVideo)
    })

    it.scoped(`sends ${name} with JavaScript`, function* () {
      const { code, hasVideo, start } = yield* run("JavaScript", request, isKeyInCode)
      const { stdout } = yield* start(process.execPath, "--input-type=module", "-e", code)
      assert.match(stdout, output)
      assert.strictEqual(hasVideo(), isVideo)
    })

    it.scoped.skipIf(!hasPython)(`is valid Python for ${name}, and runs if the clients are installed`, function* () {
      const { code, cwd, start } = yield* run("Python", request, isKeyInCode)
      writeFileSync(path.join(cwd, "example.py"), code)
      yield* start("python3", "-m", "py_compile", "example.py")
      if (hasPythonClients) assert.match((yield* start("python3", "example.py")).stdout, output)
    })
  }
})
