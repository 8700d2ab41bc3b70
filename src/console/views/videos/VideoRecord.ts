import type { NamedVideo } from "../../../http/admin/videos/Schema.ts"

/** Amounts in USD, moments in Unix seconds. */
export type VideoRecord = typeof NamedVideo.Encoded
