import type { Tracer } from "../services/tracing/Tracing.ts"

type Root = "always_on" | "always_off" | "traceidratio"
export type SamplerName = Root | `parentbased_${Root}`

const randomDigits = 14

/** By the id's last 56 bits, which must be random. */
const isWithin = (traceId: string, ratio: number): boolean =>
  Number.parseInt(traceId.slice(-randomDigits), 16) >= (1 - ratio) * 16 ** randomDigits

const decide = (name: SamplerName, traceId: string, ratio: number): boolean => {
  if (name.endsWith("always_on")) return true
  return name.endsWith("traceidratio") && isWithin(traceId, ratio)
}

export const makeSampler =
  (name: SamplerName, ratio: number): Tracer["isSampled"] =>
  (traceId, parent) =>
    parent !== undefined && name.startsWith("parentbased_") ? parent.isSampled : decide(name, traceId, ratio)
