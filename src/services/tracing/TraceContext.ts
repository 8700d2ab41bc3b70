/** The W3C's trace context. */
export interface TraceContext {
  /** 32 and 16 lower-case hexadecimal digits. */
  readonly traceId: string
  readonly spanId: string
  readonly isSampled: boolean
  readonly state: string | undefined
}

const form = /^([\da-f]{2})-([\da-f]{32})-([\da-f]{16})-([\da-f]{2})(-.*)?$/
const onlyZeros = /^0+$/
const stateForm = /^[\x20-\x7e]{1,512}$/

type Header = string | ReadonlyArray<string> | undefined

/** Undefined for what is malformed, which starts a trace of its own. */
export const parse = (traceparent: Header, tracestate?: Header): TraceContext | undefined => {
  const [, version, traceId = "", spanId = "", flags = "", more] =
    typeof traceparent === "string" ? (form.exec(traceparent.trim()) ?? []) : []
  if (version === undefined || version === "ff" || (version === "00" && more !== undefined)) return undefined
  if (onlyZeros.test(traceId) || onlyZeros.test(spanId)) return undefined
  const state = typeof tracestate === "string" && stateForm.test(tracestate) ? tracestate : undefined
  return { traceId, spanId, isSampled: (Number.parseInt(flags, 16) & 1) === 1, state }
}

export const format = ({ isSampled, spanId, traceId }: TraceContext): string =>
  `00-${traceId}-${spanId}-${isSampled ? "01" : "00"}`
