import { noUsage } from "../../domain/Pricing.ts"

export interface Examples {
  readonly request?: Readonly<Record<string, Readonly<Record<string, unknown>>>>
  readonly answer: unknown
}

export const picture = "https://example.com/cat.png"
export const created = 1_795_247_029
export const hello = "Say hello in one sentence."
/** Usage of the "say hello" example. */
export const exampleUsage = { ...noUsage, prompt: 9, completion: 3 }
