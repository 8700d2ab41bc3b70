import { execFile } from "node:child_process"
import { existsSync, writeFileSync } from "node:fs"
import path from "node:path"
import { promisify } from "node:util"
import { Effect } from "effect"
import type { Model } from "../../../src/domain/Model.ts"
import { docsPages } from "../../../src/http/docs/guides/Guides.ts"
import { openApiDocument } from "../../../src/http/openapi/OpenApi.ts"
import { listModel } from "../../../src/services/catalog/ModelEntry.ts"
import { hasAllCases } from "../../harness/Cases.ts"
import { openAccount } from "../../harness/client/Account.ts"
import { assertRefused, call, refusals } from "../../harness/client/HttpCalls.ts"
import { png } from "../../harness/fixtures/TinyMedia.ts"
import { filesLoadedBy, filesWith, program } from "../../harness/gateway/GatewayProcess.ts"
import * as Served from "../../harness/gateway/ServedGateway.ts"
import { assert, describe, it, withLayer } from "../../harness/It.ts"
import { temporaryDirectory } from "../../harness/temporary.ts"
import { modelNamed } from "../openapi/NamedModels.ts"

const run = promisify(execFile)
const gateway = Served.layer(Effect.succeed({ env: { SANDBOX: "true" } }))

const unescape = (text: string): string => text.replace(/&#(\d+);/g, (_, code) => String.fromCharCode(Number(code)))

const samplesIn = (page: string, language: string): ReadonlyArray<string> =>
  [...page.matchAll(new RegExp(`<pre class="sample ${language}"[^>]*><code>([^<]*)</code>`, "g"))].map(
    ([, code = ""]) => unescape(code)
  )

/** What needs nothing that only its reader has, such as a picture on the web, a video or a request. */
const isRunnable = (sample: string): boolean => !/example\.com|vid_|req_|ggw_|from "openai"/.test(sample)

const policyWith = (script: string) =>
  new RegExp(
    `^default-src 'none'; style-src 'sha256-\\S+'; script-src ${script}; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'$`
  )
/** Its only request is the search index of the same origin. */
const withScript = policyWith("'sha256-[A-Za-z0-9+/]{43}='; connect-src 'self'")
const withoutScript = policyWith("'none'")

const reference = (models: ReadonlyArray<Model>): string => {
  const published = openApiDocument(models, listModel, "https://api.test/v1")
  const pages = docsPages({ models, listModel, published, publicUrl: "https://api.test" })
  return String(pages.get("reference")?.body)
}

withLayer(gateway)("the pages", (it) => {
  it.effect("carry a policy that allows nothing but themselves", function* () {
    const docs = yield* call("/docs/reference")
    const home = yield* call("/", { headers: { accept: "text/html,application/xhtml+xml,*/*;q=0.8" } })
    for (const { headers, status } of [docs, home]) {
      assert.strictEqual(status, 200)
      assert.strictEqual(headers.get("content-type"), "text/html; charset=utf-8")
      assert.strictEqual(headers.get("x-content-type-options"), "nosniff")
      assert.strictEqual(headers.get("cache-control"), "no-cache")
      assert.match(headers.get("x-request-id") ?? "", /^req_/)
    }
    assert.match(docs.headers.get("content-security-policy") ?? "", withScript)
    assert.match(home.headers.get("content-security-policy") ?? "", withoutScript)
    assert.strictEqual(home.headers.get("vary"), "accept")
    assert.notMatch(docs.text + home.text, /<(?:script|img|link|iframe)[^>]+(?:src|href)="(?!data:,)/)
  })

  it.effect("are not sent again to who has them, and answer HEAD without a body", function* () {
    const { headers, text } = yield* call("/docs/reference")
    const again = yield* call("/docs/reference", { headers: { "if-none-match": headers.get("etag") ?? "" } })
    assert.deepStrictEqual([again.status, again.text], [304, ""])
    const head = yield* call("/docs/reference", { method: "HEAD" })
    assert.deepStrictEqual([head.status, head.text], [200, ""])
    assert.strictEqual(head.headers.get("content-length"), String(Buffer.byteLength(text)))
    assert.deepStrictEqual((yield* call("/", { method: "HEAD" })).status, 200)
  })

  it.effect("are all there is beside the API: other paths and methods stay unknown", function* () {
    for (const path of ["/doc", "/docs/x", "/docs/quickstart", "/Docs", "/index.html", "/v1", "/v1/docs"]) {
      assertRefused(yield* call(path), refusals.noEndpoint)
    }
    for (const path of ["/", "/docs"]) assertRefused(yield* call(path, { method: "POST" }), refusals.noEndpoint)
  })

  it.effect("are links in JSON for programs", function* () {
    for (const headers of [{}, { accept: "*/*" }, { accept: "application/json" }]) {
      const answer = yield* call("/", { headers })
      assert.strictEqual(answer.headers.get("content-type"), "application/json; charset=utf-8")
      assert.strictEqual(answer.headers.get("vary"), "accept")
      const { base_url, documentation, name, openapi, version } = JSON.parse(answer.text)
      assert.deepStrictEqual([name, version], ["Generation Gateway API", "1.0.0"])
      assert.match([base_url, documentation, openapi].join(" "), /^(\S+)\/v1 \1\/docs \1\/v1\/openapi\.json$/)
    }
  })

  it.scoped.runIf(hasAllCases)("have examples in JavaScript and curl that work as printed", function* () {
    const { url } = yield* Served.ServedGateway
    const { secret } = yield* openAccount({})
    const { text } = yield* call("/docs/reference")
    const directory = yield* temporaryDirectory
    writeFileSync(path.join(directory, "cat.png"), png)
    const options = { cwd: directory, env: { ...process.env, GATEWAY_KEY: secret } }
    const runnable = (language: string) =>
      samplesIn(text, language)
        .filter(isRunnable)
        .map((sample) => sample.replace(/http:\/\/127\.0\.0\.1:\d+/g, url))
    const scripts = runnable("javascript")
    const commands = existsSync("/usr/bin/curl") ? runnable("curl") : []
    assert.isAbove(scripts.length, 8)
    assert.notMatch(scripts.join("\n"), /\{\w+_id\}/)
    for (const sample of scripts) {
      yield* Effect.promise(() => run(process.execPath, ["--input-type=module", "-e", sample], options))
    }
    for (const sample of commands) {
      yield* Effect.promise(() => run("sh", ["-c", sample.replace("curl ", "curl -sSf ")], options))
    }
  })
})

describe("the reference", () => {
  it("shows what a catalog names as text", () => {
    const hostile = `<script>alert("1")</script>'&`
    const body = reference([modelNamed({ id: hostile, surface: "chat" })])
    assert.lengthOf(body.match(/<script>/g) ?? [], 1)
    assert.include(body, "&#60;script&#62;alert(&#34;1&#34;)&#60;/script&#62;&#39;&#38;")
  })

  it("has examples in Python with its own literals, and files in forms", () => {
    const models = [
      { id: "c", surface: "chat" },
      { id: "i", surface: "image" }
    ] as const
    const samples = samplesIn(reference(models.map(modelNamed)), "python")
    const including = (part: string) => samples.filter((sample) => sample.includes(part))
    assert.isNotEmpty(
      including('        "stream": True,\n        "stream_options": {\n            "include_usage": True\n')
    )
    assert.isNotEmpty(including('    files={\n        "model": (None, "i"),\n'))
    assert.isNotEmpty(including('        "image": open("cat.png", "rb"),\n'))
    assert.isNotEmpty(including('        "Idempotency-Key": str(uuid.uuid4()),\n'))
  })

  it("is a file of the build that nothing loads before it is asked for", () => {
    const loaded = filesLoadedBy(program)
    assert.isAbove(loaded.size, 2)
    const pages = filesWith("Skip to the content")
    assert.isNotEmpty(pages)
    assert.deepStrictEqual(
      pages.filter((file) => loaded.has(file)),
      []
    )
  })
})
