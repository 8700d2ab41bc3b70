export type Tone = "good" | "warn" | "bad" | "soft"

/** A word, and whether it is good news. */
export interface Status {
  readonly text: string
  readonly tone: Tone
}
