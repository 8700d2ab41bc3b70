import { Effect } from "effect"
import type { ChatEvent, Usage } from "../../domain/Chat.ts"
import type { RouteBase } from "../../domain/Model.ts"
import { attemptSpan, type Span, type SpanParent } from "../telemetry/Tracing.ts"

/** What a span of an attempt says beside its route. */
export interface Traced<T extends RouteBase> {
  /** The vendor's name of what is asked; by default the route's. */
  readonly upstreamModel?: ((route: T) => string | undefined) | undefined
  readonly output: "text" | "image" | "video"
}

/** In the words of the semantic conventions for generative AI. */
export const startSpan = <T extends RouteBase>(
  trace: SpanParent,
  { output, upstreamModel }: Traced<T>,
  route: T
): Span => {
  const operation = output === "text" ? "chat" : "generate_content"
  const model = upstreamModel?.(route) ?? route.model
  return trace.start(`${operation} ${model}`, {
    kind: "client",
    attributes: {
      "gen_ai.operation.name": operation,
      "gen_ai.provider.name": route.provider.name,
      "gen_ai.request.model": model,
      "gen_ai.output.type": output,
      "gateway.route": route.id
    }
  })
}

/** The effect itself where the provider is not told of traces. */
export const askWithin = <A, E, R>(
  { route, span }: { readonly route: RouteBase; readonly span: Span | undefined },
  ask: Effect.Effect<A, E, R>
): Effect.Effect<A, E, R> =>
  span !== undefined && route.provider.sendsTraceContext === true ? Effect.locally(ask, attemptSpan, span) : ask

export const setUsage = (span: Span | undefined, usage: Usage | undefined): void => {
  if (span === undefined || usage === undefined) return
  span.set({ "gen_ai.usage.input_tokens": usage.prompt, "gen_ai.usage.output_tokens": usage.completion })
}

export const setUsageOf = (span: Span | undefined, events: ReadonlyArray<ChatEvent>): void => {
  if (span === undefined) return
  for (const event of events) if (event.type === "usage") setUsage(span, event.usage)
}
