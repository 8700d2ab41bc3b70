import { entriesToAttributes, type KeyValue } from "@effect/opentelemetry/OtlpResource"
import type { Span, SpanKind } from "../services/tracing/Tracing.ts"

const kinds: Readonly<Record<SpanKind, number>> = { internal: 1, server: 2, client: 3 }
const status = { unset: 0, error: 2 }
/** Sampled, and whether the parent is another process's is known. */
const flags = 0x101
const remoteParent = 0x200

const encodeSpan = (span: Span) => {
  const { attributes, context, isError, kind, name, parent, startedAt } = span
  return {
    traceId: context.traceId,
    spanId: context.spanId,
    ...(context.state !== undefined && { traceState: context.state }),
    ...(parent !== undefined && { parentSpanId: parent.spanId }),
    flags: parent !== undefined && kind === "server" ? flags | remoteParent : flags,
    name,
    kind: kinds[kind],
    startTimeUnixNano: String(startedAt),
    endTimeUnixNano: String(span.endedAt ?? startedAt),
    attributes: entriesToAttributes(Object.entries(attributes)),
    droppedAttributesCount: 0,
    events: [],
    droppedEventsCount: 0,
    links: [],
    droppedLinksCount: 0,
    status: { code: isError ? status.error : status.unset }
  }
}

export const makeEncode = (resource: Readonly<Record<string, string>>) => {
  const attributes: ReadonlyArray<KeyValue> = entriesToAttributes(Object.entries(resource))
  return (spans: ReadonlyArray<Span>) => ({
    resourceSpans: [
      {
        resource: { attributes, droppedAttributesCount: 0 },
        scopeSpans: [{ scope: { name: "generation-gateway" }, spans: spans.map(encodeSpan) }]
      }
    ]
  })
}
