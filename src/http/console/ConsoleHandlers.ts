import { createHash } from "node:crypto"
import { readFile } from "node:fs/promises"
import path from "node:path"
import { promisify } from "node:util"
import { gzip } from "node:zlib"
import { HttpApiBuilder, HttpServerRequest, HttpServerResponse } from "@effect/platform"
import { Effect } from "effect"
import { UnknownEndpoint } from "../../domain/Failure.ts"
import { ownFile } from "../../services/runtime/System.ts"
import { SiteApi } from "../Api.ts"
import { type OwnNames, requireLoopback } from "../admission/Loopback.ts"
import { respondTagged } from "../HttpAnswer.ts"

interface File {
  readonly plain: Buffer
  readonly compressed: Buffer
  readonly headers: Readonly<Record<string, string>>
}

const pageName = "index.html"
/** The build replaces the variable by the name of its own page, which a later build does not overwrite. */
const pageFile = process.env.GATEWAY_CONSOLE_PAGE ?? pageName

const types: Readonly<Record<string, string>> = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8"
}

/** Allows pictures and videos of the media store, which may have another origin. */
const policyWith = (mediaPublicUrl: string) => {
  // Both separators of a policy would otherwise end the address.
  const media = `${mediaPublicUrl}/`.replace(/[;,]/g, encodeURIComponent)
  return [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    `img-src 'self' data: ${media}`,
    `media-src 'self' ${media}`,
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'"
  ].join("; ")
}

const headersOf = (name: string, content: Buffer, policy: string) => ({
  "content-type": types[path.extname(name)] ?? "application/octet-stream",
  "content-security-policy": policy,
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
  // All file names except the page's contain a hash of the content, so these files never change.
  "cache-control": name === pageName ? "no-cache" : "public, max-age=31536000, immutable",
  vary: "accept-encoding",
  etag: `W/"${createHash("sha256").update(content).digest("base64url")}"`
})

const loadFiles = async (policy: string): Promise<ReadonlyMap<string, File>> => {
  const directory = ownFile("dist/console")
  const load = async (name: string, plain: Buffer) =>
    [name, { plain, compressed: await promisify(gzip)(plain), headers: headersOf(name, plain, policy) }] as const
  const page = await readFile(path.join(directory, pageFile))
  const fileNames = [...new Set(page.toString().match(/\bconsole-\w+\.(?:js|css)\b/g))]
  const loading = fileNames.map(async (name) => load(name, await readFile(path.join(directory, name))))
  return new Map(await Promise.all([load(pageName, page), ...loading]))
}

const send = ({ headers, plain, compressed }: File) =>
  Effect.map(HttpServerRequest.HttpServerRequest, (request) => {
    const isZipped = /\bgzip\b/.test(request.headers["accept-encoding"] ?? "")
    const body = isZipped ? compressed : plain
    const encoding = isZipped ? { "content-encoding": "gzip" } : {}
    return respondTagged(request, {
      headers: { ...headers, ...encoding, "content-length": String(body.length) },
      body
    })
  })

/** Redirects an address with a trailing slash, because the page's relative links would not work there. */
const redirectToPage = HttpServerResponse.empty({ status: 308, headers: { location: "../console" } })

/** Serves the console. Its files are loaded at the first request. */
export const ConsoleHandlers = (
  options: OwnNames & {
    /** Whether operators may sign in from other machines. */
    readonly isConsolePublic: boolean
    /** Whether members may sign in from other machines. */
    readonly areMembersPublic: boolean
    readonly mediaPublicUrl: string
  }
) =>
  HttpApiBuilder.group(SiteApi, "console", (handlers) => {
    let cachedFiles: ReadonlyMap<string, File> | undefined
    const files = Effect.promise(async () => (cachedFiles ??= await loadFiles(policyWith(options.mediaPublicUrl))))
    const serve = Effect.fnUntraced(function* (name: string) {
      yield* requireLoopback(options.isConsolePublic || options.areMembersPublic, options)
      const file = (yield* files).get(name)
      return file === undefined ? yield* new UnknownEndpoint() : yield* send(file)
    })
    return handlers
      .handleRaw("page", ({ request: { url } }) =>
        Effect.map(serve(pageName), (answer) => (/^[^?]*\/(?:\?|$)/.test(url) ? redirectToPage : answer))
      )
      .handleRaw("file", ({ path: { "*": name } }) => serve(name))
  })
