import { fromBase64 } from "../../services/media/Base64.ts"
import type { ProviderFailure } from "../../services/routing/Provider.ts"

/** A picture or clip, and where it is: an http(s) URL, or a `data:` URI. */
export interface Media {
  readonly url: string
  readonly revisedPrompt: string | undefined
}

/** How a job ended. */
export type End =
  | { readonly state: "done"; readonly media: Media }
  | { readonly state: "failed"; readonly failure: ProviderFailure }

/** Where a job stands; a failure of the effect that says so is that of the asking. */
export type Progress = { readonly state: "queued" | "in_progress" } | End

export const isOver = (progress: Progress): progress is End => progress.state === "done" || progress.state === "failed"

/** The bytes of a `data:` URI in base64; undefined where it is none, or has none. */
export const inlined = (url: string): Uint8Array | undefined => {
  const comma = url.indexOf(",")
  const bytes = /;base64$/i.test(url.slice(0, Math.max(0, comma))) ? fromBase64(url.slice(comma + 1)) : undefined
  return bytes?.length === 0 ? undefined : bytes
}
