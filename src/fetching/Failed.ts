import { FetchFailed } from "../services/media/Fetcher.ts"

const detailLimit = 300

/** Paths and queries may hold secrets, so of a URL nothing but its host is ever told. */
export const failed = (reason: FetchFailed["reason"], url: URL | undefined, what: string, status?: number) => {
  const detail = url === undefined ? what : `${url.host.slice(0, 255)}: ${what}`
  return new FetchFailed({ reason, status, detail: detail.replaceAll(/\s+/g, " ").slice(0, detailLimit) })
}

/** What went wrong on the wire, in Node's words. */
export const broken = (url: URL, error: Error, status?: number) => {
  const code = "code" in error && typeof error.code === "string" ? `${error.code} ` : ""
  const text = error instanceof AggregateError ? error.errors.map(String).join("; ") : error.message
  return failed("network", url, code + text, status)
}
