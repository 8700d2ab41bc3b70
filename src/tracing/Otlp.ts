import { randomUUID } from "node:crypto"
import { layerJson, layerProtobuf, OtlpSerialization } from "@effect/opentelemetry/OtlpSerialization"
import { Effect, Layer } from "effect"
import { type Span, Tracing } from "../services/tracing/Tracing.ts"
import { makeEncode } from "./Encoding.ts"
import { type ExporterOptions, makeExporter } from "./Exporter.ts"
import { makeSampler, type SamplerName } from "./Sampler.ts"

interface OtlpOptions extends Pick<ExporterOptions, "url" | "headers"> {
  readonly protocol: "http/protobuf" | "http/json"
  readonly resource: Readonly<Record<string, string>>
  readonly sampler: SamplerName
  readonly ratio: number
}

export const layer = ({ protocol, ratio, resource, sampler, ...options }: OtlpOptions) =>
  Layer.scoped(
    Tracing,
    Effect.gen(function* () {
      const clock = yield* Effect.clock
      const serialization = yield* OtlpSerialization
      const encodeSpans = makeEncode({ "service.instance.id": randomUUID(), ...resource })
      const encode = (spans: ReadonlyArray<Span>) => {
        const encoded = serialization.traces(encodeSpans(spans))
        if (encoded._tag !== "Uint8Array") throw new TypeError("spans are encoded as bytes")
        return { contentType: encoded.contentType, body: encoded.body }
      }
      const tracer = {
        now: () => clock.unsafeCurrentTimeNanos(),
        isSampled: makeSampler(sampler, ratio),
        export: yield* makeExporter({ ...options, encode })
      }
      return { tracer }
    })
  ).pipe(Layer.provide(protocol === "http/json" ? layerJson : layerProtobuf))
