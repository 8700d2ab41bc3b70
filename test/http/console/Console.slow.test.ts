import { cpSync, readdirSync, symlinkSync } from "node:fs"
import path from "node:path"
import { Effect } from "effect"
import { assertRefused, call, callAt, refusals } from "../../harness/client/HttpCalls.ts"
import { freshUrl } from "../../harness/database/Postgres.ts"
import { program, start } from "../../harness/gateway/GatewayProcess.ts"
import * as Served from "../../harness/gateway/ServedGateway.ts"
import { assert, it, withLayer } from "../../harness/It.ts"
import { temporaryDirectory } from "../../harness/temporary.ts"

const media = "https://media.example:8443/a%2Cb"
const policy = `default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: ${media}/; media-src 'self' ${media}/; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`

const namesIn = (page: string) => Array.from(page.matchAll(/"(console\/[\w.-]+)"/g), ([, name]) => `/${name}`)

const forwarded = { "x-forwarded-for": "127.0.0.1" }

const env = { SANDBOX: "true", MEDIA_PUBLIC_URL: decodeURIComponent(media) }

withLayer(Served.layer(Effect.succeed({ env })))("the console's page", (it) => {
  it.effect("allows only its own files and stored media, and is asked for anew each time", function* () {
    const { headers, status } = yield* call("/console")
    assert.strictEqual(status, 200)
    assert.strictEqual(headers.get("content-type"), "text/html; charset=utf-8")
    assert.strictEqual(headers.get("content-security-policy"), policy)
    assert.strictEqual(headers.get("x-content-type-options"), "nosniff")
    assert.strictEqual(headers.get("referrer-policy"), "no-referrer")
    assert.strictEqual(headers.get("cache-control"), "no-cache")
    const again = yield* call("/console", { headers: { "if-none-match": headers.get("etag") ?? "" } })
    assert.deepStrictEqual([again.status, again.text], [304, ""])
    assert.strictEqual(again.headers.get("content-security-policy"), policy)
  })

  it.effect("has one address, which the one with a slash leads to", function* () {
    const { url } = yield* Served.ServedGateway
    for (const path of ["/console/", "/console/?a=b/"]) {
      const { headers, status } = yield* call(path)
      assert.strictEqual(status, 308)
      assert.strictEqual(new URL(headers.get("location") ?? "", `${url}${path}`).href, `${url}/console`)
    }
    assert.strictEqual((yield* call("/console?a=b/")).status, 200)
  })

  it.effect("names one script and one style sheet, which never change under their names", function* () {
    const names = namesIn((yield* call("/console")).text)
    assert.deepStrictEqual(
      names.map((name) => name.split(".").at(-1)),
      ["css", "js"]
    )
    for (const name of names) {
      assert.match(name, /-[A-Z0-9]{8}\.\w+$/)
      const zipped = yield* call(name, { headers: { "accept-encoding": "gzip" } })
      const plain = yield* call(name, { headers: { "accept-encoding": "identity" } })
      assert.strictEqual(zipped.headers.get("content-encoding"), "gzip")
      assert.isNull(plain.headers.get("content-encoding"))
      assert.strictEqual(zipped.text, plain.text)
      for (const { headers } of [zipped, plain]) {
        assert.strictEqual(headers.get("cache-control"), "public, max-age=31536000, immutable")
        assert.strictEqual(headers.get("x-content-type-options"), "nosniff")
        assert.strictEqual(headers.get("vary"), "accept-encoding")
      }
    }
  })

  it.effect("takes at most 95 kB to load", function* () {
    const files = yield* Effect.forEach(namesIn((yield* call("/console")).text), (name) =>
      call(name, { headers: { "accept-encoding": "gzip" } })
    )
    const lengths = files.map(({ headers }) => Number(headers.get("content-length")))
    assert.isAbove(Math.min(...lengths), 1000)
    assert.isAtMost(
      lengths.reduce((sum, length) => sum + length),
      95_000
    )
  })

  it.effect("has no other files", function* () {
    for (const path of ["/console/console.js", "/console/%2e%2e%2fgateway.js", "/console/a/b", "/console/.env"]) {
      assertRefused(yield* call(path), refusals.noEndpoint)
    }
  })

  it.effect("does not exist for requests that a proxy passes on, and neither do its files", function* () {
    const names = namesIn((yield* call("/console")).text)
    for (const path of ["/console", "/console/", ...names]) {
      assertRefused(yield* call(path, { headers: forwarded }), refusals.noEndpoint)
    }
  })
})

/** The built program without the console's files, which can be brought later. */
const incomplete = Effect.map(temporaryDirectory, (root) => {
  const built = path.dirname(program)
  const copy = (name: string) => cpSync(path.join(built, name), path.join(root, "dist", name), { recursive: true })
  for (const name of readdirSync(built)) if (name !== "console") copy(name)
  for (const name of ["package.json", "node_modules", "migrations", "catalog.yaml"])
    symlinkSync(path.join(built, "..", name), path.join(root, name))
  return { root, entry: path.join(root, "dist/gateway.js"), complete: () => copy("console") }
})

it.scopedLive(
  "the console that is public is served to requests that a proxy passes on, once its files are there",
  function* () {
    const { complete, entry, root } = yield* incomplete
    const env = { SANDBOX: "true", CONSOLE_PUBLIC: "true", DATABASE_URL: yield* freshUrl, DATA_DIR: root }
    const { url } = yield* start({ entry, env })
    const status = Effect.map(callAt(`${url}/console`, { headers: forwarded }), (answer) => answer.status)
    assert.strictEqual(yield* status, 500)
    complete()
    assert.strictEqual(yield* status, 200)
  }
)
