export type Tone = "good" | "warn" | "bad" | "soft"

export interface Status {
  readonly text: string
  readonly tone: Tone
}
