import type { UpstreamHeaders } from "./Exchange.ts"

/** The vendor's own before what a proxy of theirs adds. */
const names = [
  "x-fal-request-id",
  "request-id",
  "x-request-id",
  "apim-request-id",
  "x-amzn-requestid",
  "x-goog-request-id",
  "x-generation-id",
  "x-tt-logid",
  "cf-ray"
]

/** The id under which the vendor's support finds a request: at most 200 printable characters. */
export const requestIdIn = (headers: UpstreamHeaders): string | undefined => {
  for (const name of names) {
    const value = headers[name]
    const text = typeof value === "string" ? value : value?.[0]
    const id = text?.replace(/[^ -~]/g, "").slice(0, 200)
    if (id) return id
  }
  return undefined
}
