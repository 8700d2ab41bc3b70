import type { ChatEvent, Usage } from "../../domain/Chat.ts"
import type { RouteBase } from "../../domain/Model.ts"
import type { Span, SpanParent } from "../tracing/Tracing.ts"

/** The attributes of an attempt's span beside its route. */
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

export const setUsage = (span: Span | undefined, usage: Usage | undefined): void => {
  if (span === undefined || usage === undefined) return
  span.set({ "gen_ai.usage.input_tokens": usage.prompt, "gen_ai.usage.output_tokens": usage.completion })
}

export const setUsageOf = (span: Span | undefined, events: ReadonlyArray<ChatEvent>): void => {
  if (span === undefined) return
  for (const event of events) if (event.type === "usage") setUsage(span, event.usage)
}
