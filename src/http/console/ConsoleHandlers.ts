import { createHash } from "node:crypto"
import { readFile } from "node:fs/promises"
import path from "node:path"
import { promisify } from "node:util"
import { gzip } from "node:zlib"
import { HttpApiBuilder, HttpServerRequest, HttpServerResponse } from "@effect/platform"
import { Effect } from "effect"
import { UnknownEndpoint } from "../../domain/Failure.ts"
import { ownFile } from "../../services/runtime/System.ts"
import { respondTagged } from "../Answer.ts"
import { SiteApi } from "../Api.ts"
import { type OwnNames, requireLoopback } from "../admission/Loopback.ts"

interface File {
  readonly plain: Buffer
  readonly zipped: Buffer
  readonly headers: Readonly<Record<string, string>>
}

const pageName = "index.html"
/** The page of this process's own build, which a later build does not replace. */
const pageFile = process.env.GATEWAY_CONSOLE_PAGE ?? pageName

const types: Readonly<Record<string, string>> = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8"
}

const policy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'"
].join("; ")

const headersOf = (name: string, content: Buffer) => ({
  "content-type": types[path.extname(name)] ?? "application/octet-stream",
  "content-security-policy": policy,
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
  // Names have a hash of the content; the page's has not.
  "cache-control": name === pageName ? "no-cache" : "public, max-age=31536000, immutable",
  vary: "accept-encoding",
  etag: `W/"${createHash("sha256").update(content).digest("base64url")}"`
})

const loadFiles = async (): Promise<ReadonlyMap<string, File>> => {
  const directory = ownFile("dist/console")
  const load = async (name: string, plain: Buffer) =>
    [name, { plain, zipped: await promisify(gzip)(plain), headers: headersOf(name, plain) }] as const
  const page = await readFile(path.join(directory, pageFile))
  const named = [...new Set(page.toString().match(/\bconsole-\w+\.(?:js|css)\b/g))]
  const loading = named.map(async (name) => load(name, await readFile(path.join(directory, name))))
  return new Map(await Promise.all([load(pageName, page), ...loading]))
}

const send = ({ headers, plain, zipped }: File) =>
  Effect.map(HttpServerRequest.HttpServerRequest, (request) => {
    const isZipped = /\bgzip\b/.test(request.headers["accept-encoding"] ?? "")
    const body = isZipped ? zipped : plain
    const encoding = isZipped ? { "content-encoding": "gzip" } : {}
    return respondTagged(request, {
      headers: { ...headers, ...encoding, "content-length": String(body.length) },
      body
    })
  })

/** Its files are named beside the page, which has no slash at its end. */
const toPage = HttpServerResponse.empty({ status: 308, headers: { location: "../console" } })

/** The browser's program is loaded by the first who asks. */
export const ConsoleHandlers = (
  options: OwnNames & { readonly consolePublic: boolean; readonly membersPublic: boolean }
) =>
  HttpApiBuilder.group(SiteApi, "console", (handlers) => {
    let loaded: ReadonlyMap<string, File> | undefined
    const files = Effect.promise(async () => (loaded ??= await loadFiles()))
    const serve = Effect.fnUntraced(function* (name: string) {
      yield* requireLoopback(options.consolePublic || options.membersPublic, options)
      const file = (yield* files).get(name)
      return file === undefined ? yield* new UnknownEndpoint() : yield* send(file)
    })
    return handlers
      .handleRaw("page", ({ request: { url } }) =>
        Effect.map(serve(pageName), (answer) => (/^[^?]*\/(?:\?|$)/.test(url) ? toPage : answer))
      )
      .handleRaw("file", ({ path: { "*": name } }) => serve(name))
  })
