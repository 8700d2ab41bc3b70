import type { NamedVideo } from "../../../http/admin/Videos.ts"

/** Amounts in USD, moments in Unix seconds. */
export type VideoRecord = typeof NamedVideo.Encoded
